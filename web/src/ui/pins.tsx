/** Pinned contexts: their numbers stay in sight while groups change. */

import { ways } from '../engine/ways';
import { Facts } from './facts';
import { useModel, useTopics } from './hooks';
import { aroundText, wayText } from './way-text';

export function Pins() {
  const model = useModel();
  useTopics(model, 'calm', 'view');
  const { pins } = model.shown;
  if (pins.length === 0) return null;
  const around = ways(model.layer.tree, model.pack.names, pins);
  return (
    <section class="panel pins" aria-label="Pinned">
      <h2>Pinned</h2>
      {pins.map((context) => (
        <div class="pin" key={context}>
          <button
            type="button"
            class="quiet"
            title={wayText(model, context)}
            onClick={() => model.zoomTo(context)}
          >
            {model.nameOf(context)}
            <small>{aroundText(model, around.get(context) ?? [])}</small>
          </button>
          <button
            type="button"
            class="quiet"
            aria-label={`Unpin ${model.nameOf(context)}`}
            onClick={() => model.pin(context)}
          >
            ×
          </button>
          <Facts model={model} context={context} />
        </div>
      ))}
    </section>
  );
}
