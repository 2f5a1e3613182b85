import { useMemo, useState } from 'react';
import type { ModuleFlame } from '../../../api/types';
import { formatDuration } from '../../../base/format';
import { useView } from '../../../state/queries';
import { useSelection } from '../../../state/selection';
import type { TableSearch } from '../../../state/table';
import { FlameGraph } from '../../../widgets/charts/flame/FlameGraph';
import { Panel } from '../../../widgets/Panel';
import { SavePicture } from '../../../widgets/charts/SavePicture';
import { createMatcher } from '../../../widgets/table/search';
import { SearchBox } from '../../../widgets/table/SearchBox';
import { Choice } from '../../../widgets/inputs/Choice';
import { buildModuleFlame, type Frame } from './select';

interface Props {
  tab: string;
  hasDevice: boolean;
  onPlace: (place: number) => void;
}

/** The model as a flame graph of host or device time. */
export function ModuleFlameGraph({ tab, hasDevice, onPlace }: Props) {
  const { selection, select } = useSelection();
  const [search, setSearch] = useState<TableSearch>({ text: '', regex: false });
  const { run, worker, span, params } = selection;
  const time = params.time ?? (hasDevice ? 'device' : 'host');
  const answer = useView<ModuleFlame>(`${tab}/flame`, { run, worker, span }, { time });
  const flame = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const root = useMemo(() => (flame ? buildModuleFlame(flame) : undefined), [flame]);
  const match = useMemo(() => createMatcher(search), [search]);
  return (
    <Panel
      title="Flame graph"
      note="modules with their operators and backward pass; click to zoom in, click again to open the module"
      actions={
        <>
          <SearchBox search={search} onSearch={setSearch} placeholder="Find a module or operator" />
          {hasDevice && (
            <Choice
              name="Time"
              value={time}
              options={[
                ['device', 'Device time'],
                ['host', 'Host time'],
              ]}
              onPick={picked => select({ params: { ...params, time: picked } })}
            />
          )}
          <SavePicture name={`${tab}_${time}_flame`} />
        </>
      }
    >
      {answer.error && <p className="status error">{answer.error.message}</p>}
      {root && root.value === 0 && <p className="dim">{emptySentence(time, hasDevice)}</p>}
      {root && root.value > 0 && (
        <FlameGraph
          root={root}
          color={time === 'device' ? 'var(--c-kernel)' : 'var(--c-cpu_exec)'}
          format={formatDuration}
          highlight={search.text ? match.test : undefined}
          onOpen={node => onPlace((node.data as Frame).place)}
          maxHeight={640}
        />
      )}
    </Panel>
  );
}

function emptySentence(time: string, hasDevice: boolean): string {
  const other = time === 'device' ? 'Host' : 'Device';
  return `No ${time} time was recorded in modules.${hasDevice ? ` Choose ${other} time instead.` : ''}`;
}
