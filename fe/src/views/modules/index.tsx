import type { ModulesPayload } from '../../api/types';
import { useSelection } from '../../state/selection';
import { Answer } from '../../widgets/Answer';
import { Sentence } from '../../widgets/Sentence';
import { CallTree } from './CallTree';
import { Choice } from '../../widgets/inputs/Choice';
import { Detail } from '../_shared/modules/Detail';
import { Flame } from '../_shared/modules/Flame';
import { Rest } from '../_shared/modules/Rest';
import { pathTo } from '../_shared/modules/select';
import { Tree } from '../_shared/modules/Tree';
import grid from '../_shared/modules/Grid.module.css';

const SHOWS = [
  ['table', 'Table'],
  ['flame', 'Flame graph'],
  ['calls', 'Call tree'],
] as const;

export default function ModulesView({ payload, crumb }: { payload: ModulesPayload; crumb: string }) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const show = SHOWS.find(([name]) => name === params.show)?.[0] ?? 'table';
  const path = params.place === undefined ? [] : pathTo(payload.rows, Number(params.place));
  const onPlace = (place: number | undefined) => {
    const { place: _, ...others } = params;
    select({ params: place === undefined ? others : { ...others, place: String(place) } });
  };
  return (
    <>
      <Answer crumb={crumb} why={payload.details.length > 0 && <Sentence text={payload.details} />}>
        <Sentence text={payload.headline} />
      </Answer>
      <Choice
        name="Show"
        value={show}
        options={SHOWS}
        onPick={picked => {
          const { show: _, ...others } = params;
          select({ params: picked === 'table' ? others : { ...others, show: picked } });
        }}
      />
      <div className={`${grid.grid} ${path.length > 0 && show !== 'calls' ? grid.withDetail : ''}`}>
        {show === 'table' && (
          <div className={grid.table}>
            <Tree
              name="modules"
              rows={payload.rows}
              classes={payload.classes}
              deviceTime={payload.device_ns}
              hasBackward={payload.has_backward}
              reasons={payload.reasons}
              place={path.length > 0 ? Number(params.place) : undefined}
              onPlace={onPlace}
              foot={<Rest payload={payload} />}
            />
          </div>
        )}
        {show === 'flame' && <Flame tab="modules" hasDevice={payload.has_device} onPlace={onPlace} />}
        {show === 'calls' && <CallTree hasDevice={payload.has_device} />}
        {path.length > 0 && show !== 'calls' && (
          <Detail
            key={params.place}
            tab="modules"
            path={path}
            hasDevice={payload.has_device}
            onPlace={onPlace}
          />
        )}
      </div>
    </>
  );
}
