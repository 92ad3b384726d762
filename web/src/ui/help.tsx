/** Help: how to read the page, and its keys. */

import { useEffect, useRef } from 'preact/hooks';

const KEYS: [string, string][] = [
  ['/', 'Search frames'],
  ['W  S', 'In the flame graph: zoom in (to the cursor, or to the widest frame), zoom out'],
  ['A  D', 'In the flame graph: go to the frame on the left, on the right'],
  ['← → ↑ ↓', 'In the flame graph: move the cursor. Enter zooms in'],
  ['P', 'Pin the frame at the cursor (or Shift and click)'],
  ['F', 'Filter by the time in the frame at the cursor'],
  ['Escape', 'End the search, then zoom out; close a dialog'],
  ['↑ ↓', 'On a histogram: go to the brush of A, of B'],
  [
    '← →',
    'On a histogram: move the range, or the edge chosen by Enter. With Shift: the upper edge. With Alt: in small steps',
  ],
  ['Enter', 'On a histogram: choose what arrows move: the range, its lower edge, its upper edge'],
  [
    'Home  End',
    'On a histogram: move to the lower end, to the upper end. Delete removes the range',
  ],
  ['W S A D', 'On a timeline: zoom and pan. ↑ ↓ go from segment to segment, Home shows all'],
  ['?', 'Show this help'],
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
        <h2>Help</h2>
        <button
          type="button"
          class="close"
          aria-label="Close"
          onClick={() => dialog.current?.close()}
        >
          ×
        </button>
      </header>
      <p>
        The page compares group B with group A. Its first sentence names the calling context that
        explains most of the difference.
      </p>
      <p>
        Each histogram shows both groups on one axis: A above the middle line, B below it. The
        height of a bar is a percentage of the group, so both groups have the same scale although
        their sizes differ. Point at a bar for the numbers of executions. Grey bars are outside the
        range of the group. Drag in the upper half to filter A, in the lower half to filter B. Drag
        an edge to resize a range, its middle to move it; click outside the range to remove it.
      </p>
      <p>
        A box of the flame graph is a frame. Its width is the mean time that executions of B spend
        in the frame and in the frames below it. Its colour is the difference of own times (without
        the frames below), in pooled standard deviations: orange frames take more time in B, blue
        frames less. Grey frames have no significant difference (p of 1 % or more). Hatched frames
        occur only in A; their width is the mean of A.
      </p>
      <p>
        The address of the page contains the view: copy it as a link, or use the browser's Back
        button. It does not contain the token. On another computer, first open the address that the
        server printed.
      </p>
      <table class="plain keys">
        <caption>Keyboard</caption>
        <tbody>
          {KEYS.map(([key, effect]) => (
            <tr key={effect}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{effect}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </dialog>
  );
}
