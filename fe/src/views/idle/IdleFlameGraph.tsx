import { useMemo } from 'react';
import type { IdleFlamePayload } from '../../api/types';
import { formatDuration } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { FlameGraph } from '../../widgets/charts/flame/FlameGraph';
import { Panel } from '../../widgets/Panel';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { pickParams, buildIdleFlame } from './select';

/** Idle time as a flame graph: causes, and within them frames, annotations, operators and calls. */
export function IdleFlameGraph() {
  const { selection, select } = useSelection();
  const { run, worker, span, params } = selection;
  const requested = pickParams(params, 'step', 'device', 'stream');
  const answer = useView<IdleFlamePayload>('idle/flame', { run, worker, span }, requested);
  const flame = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const root = useMemo(() => (flame ? buildIdleFlame(flame) : undefined), [flame]);
  return (
    <Panel
      title="Host activity during idle time"
      note="width is idle time, color is cause; click to zoom in, again to open a slice"
      actions={<SavePicture name="idle_flame" />}
      pending={!flame && !answer.error}
    >
      {answer.error && <p className="status error">{answer.error.message}</p>}
      {root && root.value > 0 && (
        <FlameGraph
          root={root}
          color="var(--x-unknown)"
          format={formatDuration}
          onOpen={node =>
            typeof node.data === 'number' && select({ view: 'trace', params: { event: String(node.data) } })
          }
          maxHeight={260}
        />
      )}
    </Panel>
  );
}
