/** Help: how to read the page, and its keys. */

import { useEffect, useRef } from 'preact/hooks';

const KEYS: [string, string][] = [
  ['/', 'Search frames'],
  ['W  S', 'Flame graph: zoom in (to the cursor, or to the widest frame), zoom out'],
  ['A  D', 'Flame graph: go to the frame on the left, on the right'],
  ['← → ↑ ↓', 'In the flame graph: move the cursor. Enter zooms in'],
  ['P', 'Pin the frame at the cursor (also Shift and click)'],
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
        explains most of the difference. Each histogram shows both groups: A above the middle line,
        B below it. Drag in the upper half to filter A, in the lower half to filter B. Drag an edge
        to resize a range, its middle to move it; click outside the range to remove it.
      </p>
      <p>
        In the flame graph a box is as wide as the mean time that executions of B spend in the
        frame, including everything within it. Its colour is the difference of own times, in pooled
        standard deviations: orange boxes take more time in B, blue boxes less. Grey boxes have no
        significant difference (p of 1 % or more). Hatched boxes are time that only A has, as wide
        as its mean.
      </p>
      <p>
        The address of the page describes the view: copy it as a link, or use the browser's Back
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
