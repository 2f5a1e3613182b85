import type { ReactElement } from 'react';
import type { ModulesPayload } from '../../../api/types';
import type { Phrase } from '../../../base/text';
import { formatDuration, plural } from '../../../base/format';
import { useSelection } from '../../../state/selection';
import { Answer } from '../../../widgets/Answer';
import { Choice } from '../../../widgets/inputs/Choice';
import { Sentence } from '../../../widgets/Sentence';
import { Term } from '../../../widgets/Term';
import { ModuleDetail } from './ModuleDetail';
import { ModuleFlameGraph } from './ModuleFlameGraph';
import { pathTo } from './select';
import { Tree } from './Tree';
import grid from './Grid.module.css';

/** A choice of what the page shows: the module table, the flame graph, or content of the tab itself. */
interface Show {
  name: string;
  title: string;
  content: 'tree' | 'flame' | ReactElement;
  /** Why there is nothing to show, if so. */
  missing?: readonly Phrase[];
}

interface Props {
  /** "modules" or "lightning": the tab whose parts are requested. */
  tab: string;
  /** Name of the table in saved files. */
  name: string;
  payload: ModulesPayload;
  crumb: string;
  shows: readonly Show[];
  /** The choice shown at first. */
  first: string;
}

/** The modules of a trace as a table or flame graph, with the details of the selected one. */
export function ModulesPage({ tab, name, payload, crumb, shows, first }: Props) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const show =
    shows.find(choice => choice.name === params.show) ?? shows.find(choice => choice.name === first)!;
  const { content, missing } = show;
  const isModuleContent = content === 'tree' || content === 'flame';
  const path =
    isModuleContent && params.place !== undefined ? pathTo(payload.rows, Number(params.place)) : [];
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
        value={show.name}
        options={shows.map(choice => [choice.name, choice.title] as const)}
        onPick={picked => {
          const { show: _, q: __, sort: ___, ...others } = params;
          select({ params: picked === first ? others : { ...others, show: picked } });
        }}
      />
      {missing && (
        <p className="dim">
          <Sentence text={missing} />
        </p>
      )}
      <div className={`${grid.grid} ${path.length > 0 ? grid.withDetail : ''}`}>
        {!missing && content === 'tree' && (
          <div className={grid.table}>
            <Tree
              name={name}
              rows={payload.rows}
              classes={payload.classes}
              deviceTime={payload.device_ns}
              hasBackward={payload.has_backward}
              reasons={payload.reasons}
              place={path.length > 0 ? Number(params.place) : undefined}
              onPlace={onPlace}
              foot={<UnplacedWork payload={payload} />}
            />
          </div>
        )}
        {!missing && content === 'flame' && (
          <ModuleFlameGraph tab={tab} hasDevice={payload.has_device} onPlace={onPlace} />
        )}
        {!missing && !isModuleContent && content}
        {path.length > 0 && (
          <ModuleDetail
            key={params.place}
            tab={tab}
            path={path}
            hasDevice={payload.has_device}
            onPlace={onPlace}
          />
        )}
      </div>
    </>
  );
}

/** Device work outside any module; without device work, why backward work isn't assigned to modules. */
function UnplacedWork({ payload }: { payload: ModulesPayload }) {
  if (!payload.has_device) {
    return payload.has_backward ? null : <Sentence text={payload.reasons.backward ?? []} />;
  }
  const { outside, unlinked } = payload;
  return (
    <>
      outside any module {formatDuration(outside.device_ns)} in {plural(outside.events, 'device event')} · not
      linked {formatDuration(unlinked.device_ns)} in {plural(unlinked.events, 'device event')}{' '}
      <Term id="not_linked" />
    </>
  );
}
