/** What there is to know about the page, and its keys. */

import { useEffect, useRef } from 'preact/hooks';

const KEYS: [string, string][] = [
  ['/', 'search frames'],
  ['W', 'flame graph: zoom in, to the cursor or the widest frame within'],
  ['S', 'flame graph: zoom out'],
  ['A  D', 'flame graph: the frame beside'],
  ['← → ↑ ↓', 'in the flame graph: move the cursor; Enter zooms in'],
  ['P', 'pin the frame at the cursor (also: Shift and click)'],
  ['F', 'filter by the time in the frame at the cursor'],
  ['Escape', 'end the search, then zoom out, then close'],
  ['← →', 'on a histogram: move the brush; with Shift: resize it; with Alt: in small steps'],
  ['Home  End', 'on a histogram: the brush to an end; Delete takes it away'],
  ['W S A D', 'on a timeline: zoom and pan; ↑ ↓ go from segment to segment; Home shows all'],
  ['?', 'this help'],
];

export function Help({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} class="help" aria-label="Help" onClose={onClose}>
      <header>
        <h2>Two groups of executions</h2>
        <button type="button" class="close" aria-label="Close" onClick={() => dialog.current?.close()}>
          ×
        </button>
      </header>
      <p>
        Drag on a histogram to choose which executions are in group A (left) and in group B (right). Each filter changes
        all other histograms of its group at once. Drag an edge to resize, the middle to move, click beside to take it
        away.
      </p>
      <p>
        The flame graph shows where executions of B spend their time: a box is as wide as B's mean, with all within it.
        Its colour is the difference to A in standard deviations of both groups: orange is more in B, blue is less. Grey
        boxes are not significant: random groups of these sizes differ as much in some context with a probability of 1 %
        or more. Hatched boxes are time that only A has, as wide as A's mean.
      </p>
      <p>
        The address of the page always tells what you see: copy it as a link, or go back with the browser's button. The
        token is not in it: another person needs the address that the server printed first.
      </p>
      <table class="plain keys">
        <caption>Keyboard</caption>
        <tbody>
          {KEYS.map(([key, what]) => (
            <tr key={what}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{what}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </dialog>
  );
}
