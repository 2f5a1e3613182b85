// Saving what is shown: the picture of the tracks, the totals by name, and what else there is to download.
import { Popover } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import type { TraceColors, TracePayload } from '../../../api/types';
import { savePng, saveSvg, type Chart } from '../../../base/browser/picture';
import { saveFile } from '../../../base/browser/save';
import { useClient } from '../../../state/queries';
import type { ColorBy } from '../../../timeline/draw/colors';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import type { Timeline } from '../useTimeline';
import { meanings } from './meanings';
import { pictureOfTracks } from './picture';
import { totalsOf, type Counted } from './totals';

/** What is saved of a timeline beside its picture. */
export interface Saved {
  /** What the picture is of. */
  subject: string;
  traces: readonly Counted[];
  colors?: TraceColors | undefined;
  links?: ReactNode;
}

interface Props extends Saved {
  timeline: Timeline;
  payload: TracePayload;
  colorBy: ColorBy;
}

const NAME = 'timeline';

export function Save({ timeline, payload, colorBy, subject, traces, colors, links }: Props) {
  const client = useClient();
  const [problem, setProblem] = useState<string | null>(null);
  const { controller, shown, time } = timeline;
  const told = async (work: () => Promise<void> | void) => {
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const draw = (save: (name: string, drawn: readonly Chart[]) => Promise<void> | void) => () =>
    told(() => {
      const title = `${subject}, ${time(shown.begin)} to ${time(shown.end)}`;
      const picture =
        controller && pictureOfTracks(controller, payload, meanings(colorBy, payload, colors), title);
      return picture ? save(NAME, [picture]) : undefined;
    });
  const saveTotals = () =>
    told(async () => saveFile(`${NAME}.csv`, await totalsOf(client, traces, shown), 'text/csv'));
  return (
    <Popover position="bottom-end" shadow="md" withinPortal trapFocus returnFocus>
      <Popover.Target>
        <Button look="quiet" title="Download" aria-label="Download">
          <Icon name="download" size={14} />
        </Button>
      </Popover.Target>
      <Popover.Dropdown className="menu" data-part="trace-menu">
        <Button look="text" onClick={draw(saveSvg)}>
          Picture of what is in sight, SVG
        </Button>
        <Button look="text" onClick={draw(savePng)}>
          Picture of what is in sight, PNG
        </Button>
        <Button look="text" onClick={saveTotals}>
          Times by name of what is shown, CSV
        </Button>
        {links}
        {problem !== null && <p role="alert">{problem}</p>}
      </Popover.Dropdown>
    </Popover>
  );
}
