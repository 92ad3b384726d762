/**
 * The flame graph as a table, for screen readers: a tree whose rows the arrow keys walk through.
 */

import { useRef, useState } from 'preact/hooks';
import { SURE } from '../engine/compare';
import { type Boxes, type Line, outline, VANISHED } from '../engine/flame';
import { count, quantity, signed } from '../format';
import type { Model } from '../model';
import { kindOf } from './facts';
import { labelOf } from './flame-picture';
import { useModel } from './hooks';

/** Rows at first, and rows that each click adds. */
const LINES = 200;
const MORE = 800;
/** Levels that are indented at most: names need room. */
const INDENTED = 24;

export function Shares({ boxes }: { boxes: Boxes | null }) {
  const [isShown, setShown] = useState(false);
  return (
    <details class="shares" onToggle={(event) => setShown(event.currentTarget.open)}>
      <summary>Show as table</summary>
      {isShown && boxes !== null ? <Tree boxes={boxes} /> : null}
    </details>
  );
}

/** The line that a key goes to: the previous or next line, the parent, or the first child. */
function goal(lines: Line[], at: number, key: string): number {
  const { level } = lines[at];
  if (key === 'ArrowDown') return at + 1;
  if (key === 'ArrowUp') return at - 1;
  if (key === 'Home') return 0;
  if (key === 'End') return lines.length - 1;
  if (key === 'ArrowRight') return lines[at + 1]?.level > level ? at + 1 : -1;
  if (key !== 'ArrowLeft') return -1;
  let around = at - 1;
  while (around >= 0 && lines[around].level >= level) around--;
  return around;
}

function Tree({ boxes }: { boxes: Boxes }) {
  const model = useModel();
  const [most, setMost] = useState(LINES);
  const [current, setCurrent] = useState(0);
  const body = useRef<HTMLTableSectionElement>(null);
  const { tree } = model.layer;
  const lines = outline(tree, boxes, most);
  // The tab stop is the line that had the focus last, if it still exists.
  const place = Math.max(
    0,
    lines.findIndex(({ box }) => boxes.context[box] === current),
  );
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = (event.target as HTMLElement).closest('tr');
    const at = row === null ? -1 : [...(body.current?.rows ?? [])].indexOf(row);
    if (at < 0) return;
    if (event.key === 'Enter' && event.target === row) model.zoomTo(boxes.context[lines[at].box]);
    else {
      const next = body.current?.rows[goal(lines, at, event.key)];
      if (next === undefined) return;
      next.focus();
    }
    event.preventDefault();
    event.stopPropagation();
  };
  const left = boxes.count - lines.length;
  return (
    <>
      <div class="wide">
        <table
          class="plain tree"
          // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a tree with columns
          role="treegrid"
          aria-label="The flame graph as a tree"
          onKeyDown={key}
        >
          <thead>
            <tr>
              <th scope="col">frame</th>
              <th scope="col">within</th>
              <th scope="col">kind</th>
              <th scope="col">A</th>
              <th scope="col">B</th>
              <th scope="col">B − A</th>
              <th scope="col">significant</th>
            </tr>
          </thead>
          <tbody ref={body}>
            {lines.map((line, at) => {
              const context = boxes.context[line.box];
              const { meanA, meanB } = model.whole;
              return (
                <tr
                  key={context}
                  data-context={context}
                  tabIndex={at === place ? 0 : -1}
                  aria-level={line.level}
                  aria-posinset={line.place}
                  aria-setsize={line.of}
                  onFocus={() => setCurrent(context)}
                >
                  <td style={{ '--level': Math.min(INDENTED, line.level - 1) }}>
                    <button
                      type="button"
                      class="quiet"
                      tabIndex={-1}
                      onClick={() => model.zoomTo(context)}
                    >
                      {labelOf(model, context)}
                    </button>
                  </td>
                  <td>{context === 0 ? '' : labelOf(model, tree.parent[context])}</td>
                  <td>{kindOf(model, context)}</td>
                  <td>{quantity(meanA[context], 'ns')}</td>
                  <td>{quantity(meanB[context], 'ns')}</td>
                  <td>{signed(meanB[context] - meanA[context], 'ns')}</td>
                  <td>{differText(model, context, boxes.flag[line.box] === VANISHED)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {left > 0 ? (
        <button type="button" class="quiet" onClick={() => setMost(most + MORE)}>
          {`Show more of ${count(left)} narrower frames`}
        </button>
      ) : null}
    </>
  );
}

function differText(model: Model, context: number, isVanished: boolean): string {
  const sure = model.whole.chance[context] < SURE ? 'yes' : 'no';
  return isVanished ? `${sure}, only in A` : sure;
}
