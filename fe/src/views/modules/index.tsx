import type { ModulesPayload } from '../../api/types';
import { formatDuration, plural } from '../../base/format';
import { useSelection } from '../../state/selection';
import { Answer, Mark } from '../../widgets/Answer';
import { Term } from '../../widgets/Term';
import { CallTree } from './CallTree';
import { Choice } from '../../widgets/Choice';
import { Detail } from './Detail';
import { Flame } from './Flame';
import { pathTo, sentence } from './select';
import { Tree } from './Tree';
import './modules.css';

const SHOWS = [
  ['table', 'Table'],
  ['flame', 'Flame graph'],
  ['calls', 'Call tree'],
] as const;

export default function ModulesView({ payload, crumb }: { payload: ModulesPayload; crumb: string }) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const said = sentence(payload);
  const show = SHOWS.find(([name]) => name === params.show)?.[0] ?? 'table';
  const path = params.place === undefined ? [] : pathTo(payload.rows, Number(params.place));
  const onPlace = (place: number | undefined) => {
    const { place: _, ...others } = params;
    select({ params: place === undefined ? others : { ...others, place: String(place) } });
  };
  return (
    <>
      <Answer crumb={crumb} why={said.why}>
        {said.before}
        <Mark color={payload.has_device ? 'var(--c-kernel)' : 'var(--c-cpu_exec)'}>{said.mark}</Mark>
        {said.after}
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
      <div className={`module-grid ${path.length > 0 && show !== 'calls' ? 'with-detail' : ''}`}>
        {show === 'table' && (
          <div className="module-table">
            <Tree
              name="modules"
              rows={payload.rows}
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

/** Device work of no module. */
export function Rest({
  payload,
}: {
  payload: Pick<ModulesPayload, 'outside' | 'unlinked' | 'has_device' | 'has_backward' | 'reasons'>;
}) {
  if (!payload.has_device) {
    return payload.has_backward ? null : <>{payload.reasons.backward}</>;
  }
  const { outside, unlinked } = payload;
  return (
    <>
      outside any module {formatDuration(outside.device_ns)} in {plural(outside.calls, 'device event')} · not
      linked {formatDuration(unlinked.device_ns)} in {plural(unlinked.calls, 'device event')}{' '}
      <Term id="not_linked" />
    </>
  );
}
