import { Popover } from '@mantine/core';
import { useState } from 'react';
import { useWorkers } from '../../../state/queries';
import { capitalize } from '../../../base/text';
import { Button } from '../../../widgets/inputs/Button';
import { Checkbox } from '../../../widgets/inputs/Checkbox';
import toolsCss from '../tools/Tools.module.css';
import css from './RankPicker.module.css';

/** Most ranks on one timeline. */
export const MAX_TIMELINE_RANKS = 8;

interface Props {
  run: string;
  chosen: readonly string[];
  onChoose: (workers: string[]) => void;
}

/** The menu that chooses the ranks; the choice applies when it closes. */
export function RankPicker({ run, chosen, onChoose }: Props) {
  const workers = useWorkers(run);
  const listed = workers.data?.workers ?? [];
  const noun = listed.some(({ rank }) => rank === null) ? 'worker' : 'rank';
  const [draft, setDraft] = useState(chosen);
  const inOrder = listed.map(worker => worker.name).filter(name => draft.includes(name));
  return (
    <Popover
      onOpen={() => setDraft(chosen)}
      onClose={() => inOrder.length > 0 && String(inOrder) !== String(chosen) && onChoose(inOrder)}
      position="bottom-start"
      shadow="md"
      withinPortal
      trapFocus
      returnFocus
    >
      <Popover.Target>
        <Button>
          {capitalize(noun)}s <span className="dim">{chosen.length}</span>
        </Button>
      </Popover.Target>
      <Popover.Dropdown className={toolsCss.menu} data-part="trace-menu">
        <p className="dim">
          Up to {MAX_TIMELINE_RANKS} {noun}s at a time.
        </p>
        <div className={css.ranks}>
          {listed.map(({ name, rank }) => {
            const on = draft.includes(name);
            return (
              <Checkbox
                key={name}
                label={rank === null ? name : `rank ${rank}`}
                checked={on}
                disabled={on ? draft.length === 1 : draft.length >= MAX_TIMELINE_RANKS}
                onChange={() => setDraft(on ? draft.filter(each => each !== name) : [...draft, name])}
              />
            );
          })}
        </div>
      </Popover.Dropdown>
    </Popover>
  );
}
