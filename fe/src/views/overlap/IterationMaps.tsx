import type { OverlapPayload } from '../../api/types';
import { formatDuration } from '../../base/format';
import { HeatMap } from '../../widgets/charts/HeatMap';
import { Panel } from '../../widgets/Panel';
import css from './index.module.css';

const MAPS: Record<OverlapPayload['maps'][number]['name'], readonly [string, string]> = {
  exposed: ['Exposed communication', '--c-communication'],
  overlap: ['Overlap', '--c-late'],
  compute: ['Computation', '--c-kernel'],
  total: ['Iteration', '--c-other'],
};

interface Props {
  payload: OverlapPayload;
  /** A cell: the iteration in it with the most exposed communication. */
  onOpen: (link: string) => void;
}

/** Rank by iteration. */
export function IterationMaps({ payload, onOpen }: Props) {
  return (
    <div className={css.maps} data-part="overlap-maps">
      {payload.maps.map(({ name, values }) => {
        const [title, color] = MAPS[name];
        return (
          <Panel key={name} title={title} note="click a cell to open the timeline">
            <HeatMap
              title={`${title} by rank and iteration`}
              rows={payload.workers}
              columns={payload.steps}
              values={values}
              max={Math.max(...values.flat().map(value => value ?? 0), 1)}
              color={color}
              format={formatDuration}
              onPick={(row, column) => {
                const link = payload.links[row]?.[column];
                if (link) {
                  onOpen(link);
                }
              }}
            />
          </Panel>
        );
      })}
    </div>
  );
}
