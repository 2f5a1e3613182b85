import type { ReactElement } from 'react';
import type { ModulesPayload } from '../../../api/types';
import type { Phrase } from '../../../base/text';
import { useSelection } from '../../../state/selection';
import { Answer } from '../../../widgets/Answer';
import { Choice } from '../../../widgets/inputs/Choice';
import { Sentence } from '../../../widgets/Sentence';
import { Detail } from './Detail';
import { Flame } from './Flame';
import { Rest } from './Rest';
import { pathTo } from './select';
import { Tree } from './Tree';
import grid from './Grid.module.css';

/** One way to look at the trace: by its modules, or as the tab itself draws it. */
export interface Show {
  name: string;
  title: string;
  content: 'tree' | 'flame' | ReactElement;
  /** Why there is nothing to show. */
  missing?: readonly Phrase[];
}

interface Props {
  /** "modules" or "lightning": whose parts are asked. */
  tab: string;
  /** The name of the table in what is saved. */
  name: string;
  payload: ModulesPayload;
  crumb: string;
  shows: readonly Show[];
  /** What is shown until another is chosen. */
  first: string;
}

/** The modules of a trace as a table and as a flame graph, beside them the one that is chosen. */
export function ModulesPage({ tab, name, payload, crumb, shows, first }: Props) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const show = shows.find(each => each.name === params.show) ?? shows.find(each => each.name === first)!;
  const { content, missing } = show;
  const ofModules = content === 'tree' || content === 'flame';
  const path = ofModules && params.place !== undefined ? pathTo(payload.rows, Number(params.place)) : [];
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
        options={shows.map(each => [each.name, each.title] as const)}
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
              foot={<Rest payload={payload} />}
            />
          </div>
        )}
        {!missing && content === 'flame' && (
          <Flame tab={tab} hasDevice={payload.has_device} onPlace={onPlace} />
        )}
        {!missing && !ofModules && content}
        {path.length > 0 && (
          <Detail key={params.place} tab={tab} path={path} hasDevice={payload.has_device} onPlace={onPlace} />
        )}
      </div>
    </>
  );
}
