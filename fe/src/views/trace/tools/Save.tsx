// The Download menu: the visible tracks as a picture, totals by name, and links to files.
import { Popover } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import type { Client } from '../../../api/client';
import type { Selectors, TraceColors, TracePayload, TraceSelection } from '../../../api/types';
import { type ChartPicture, plainColor, savePng, saveSvg } from '../../../base/browser/picture';
import { saveFile, toCsv } from '../../../base/browser/save';
import { causeTitle } from '../../../base/causes';
import { useClient } from '../../../state/queries';
import type { Controller } from '../../../timeline/controller';
import type { ColorBy } from '../../../timeline/draw/colors';
import { truncateText } from '../../../timeline/draw/labels';
import { rowLabel } from '../../../timeline/draw/layout';
import { HEADER_PX, paintOverlay } from '../../../timeline/draw/overlay';
import { paint } from '../../../timeline/draw/paint';
import { SvgDrawing } from '../../../timeline/draw/vector';
import type { Span } from '../../../timeline/tiles/store';
import { Icon } from '../../../widgets/Icon';
import { Button } from '../../../widgets/inputs/Button';
import { rangeParams } from '../answers';
import type { TimelineState } from '../useTimeline';
import { type LegendEntry, legendEntries } from './Legend';

/** What the menu offers beside the picture. */
export interface SaveOptions {
  /** Title of the picture, before the time range. */
  subject: string;
  traces: readonly TotaledTrace[];
  colors?: TraceColors | undefined;
  links?: ReactNode;
}

interface Props extends SaveOptions {
  timeline: TimelineState;
  payload: TracePayload;
  colorBy: ColorBy;
}

/** Name of the saved files. */
const NAME = 'timeline';

export function Save({ timeline, payload, colorBy, subject, traces, colors, links }: Props) {
  const client = useClient();
  const [problem, setProblem] = useState<string | null>(null);
  const { controller, shown, time } = timeline;
  const attempt = async (work: () => Promise<void> | void) => {
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const draw = (save: (name: string, charts: readonly ChartPicture[]) => Promise<void> | void) => () =>
    attempt(() => {
      const title = `${subject}, ${time(shown.begin)} to ${time(shown.end)}`;
      const picture =
        controller && pictureOfTracks(controller, payload, legendEntries(colorBy, payload, colors), title);
      return picture ? save(NAME, [picture]) : undefined;
    });
  const saveTotals = () =>
    attempt(async () => saveFile(`${NAME}.csv`, await totalsCsv(client, traces, shown), 'text/csv'));
  return (
    <Popover position="bottom-end" shadow="md" withinPortal trapFocus returnFocus>
      <Popover.Target>
        <Button look="quiet" title="Download" aria-label="Download">
          <Icon name="download" size={14} />
        </Button>
      </Popover.Target>
      <Popover.Dropdown className="menu" data-part="trace-menu">
        <Button look="text" onClick={draw(saveSvg)}>
          Picture of the visible tracks, SVG
        </Button>
        <Button look="text" onClick={draw(savePng)}>
          Picture of the visible tracks, PNG
        </Button>
        <Button look="text" onClick={saveTotals}>
          Totals by name in the visible time range, CSV
        </Button>
        {links}
        {problem !== null && <p role="alert">{problem}</p>}
      </Popover.Dropdown>
    </Popover>
  );
}

/** Width of the track names, left of the drawing. */
const NAMES_PX = 190;
const INDENT = 8;
const SVG = 'http://www.w3.org/2000/svg';

/** Return a picture of the visible rows with their names and a legend; null before the first frame. */
function pictureOfTracks(
  controller: Controller,
  payload: TracePayload,
  texts: readonly LegendEntry[],
  title: string,
): ChartPicture | null {
  const { lastFrame: frame } = controller;
  if (!frame) {
    return null;
  }
  const { scene, above } = frame;
  const { palette } = scene;
  const ruler = document.createElement('canvas').getContext('2d')!;
  const { width, height } = above;
  const slices = new SvgDrawing(ruler, { x: NAMES_PX, y: HEADER_PX, width, height: scene.height });
  paint(slices, scene);
  const over = new SvgDrawing(ruler, { x: NAMES_PX, y: 0, width, height });
  paintOverlay(over, above);
  const names = new SvgDrawing(ruler, { x: 0, y: HEADER_PX, width: NAMES_PX, height: scene.height });
  for (const row of scene.layout.rows) {
    const y = row.y - scene.scroll;
    if (y < scene.height && y + row.height > 0) {
      names.font = `${row.kind === 'group' ? '600 ' : ''}11px ${palette.font}`;
      names.fillStyle = row.kind === 'group' ? palette.text : palette.soft;
      const x = row.kind === 'group' ? 0 : INDENT;
      names.fillText(
        truncateText(names, rowLabel(row, payload), NAMES_PX - x - 2 * INDENT),
        x,
        y + row.height / 2,
      );
    }
  }
  const root = document.createElementNS(SVG, 'g');
  root.append(names.root, slices.root, over.root);
  const found = [
    ...texts.map(({ code, text }) => [text, plainColor(palette.of(code).fill)] as const),
    ...palette.categories.map(
      ({ fill }, code) => [causeTitle(payload.categories[code]!), plainColor(fill)] as const,
    ),
  ].filter(([, color]) => slices.fills.has(color));
  // Kernels and the busy time of a device share a color: one entry is enough.
  const legend = found.filter(([, color], i) => found.findIndex(([, other]) => other === color) === i);
  return { title, width: NAMES_PX + width, height, legend, svg: root };
}

interface TotaledTrace {
  /** Prefix of its columns; empty if it is the only trace. */
  title: string;
  selectors: Selectors;
  /** Added to its times, ns. */
  shift: number;
  payload: TracePayload;
}

/** Return CSV with a row per name, largest total first, and count and ns of each trace. */
async function totalsCsv(client: Client, traces: readonly TotaledTrace[], window: Span): Promise<string> {
  const each = await Promise.all(traces.map(trace => rowsOf(client, trace, window)));
  const names = new Map<string, number>();
  each.forEach(rows => rows.forEach(row => names.set(row.name, (names.get(row.name) ?? 0) + row.total_ns)));
  const found = each.map(rows => new Map(rows.map(row => [row.name, row])));
  return toCsv(
    [
      'name',
      ...traces.flatMap(({ title }) => ['count', 'total_ns', 'self_ns'].map(id => `${title} ${id}`.trim())),
    ],
    [...names]
      .sort(([, a], [, b]) => b - a)
      .map(([name]) => [
        name,
        ...found.flatMap(rows => {
          const row = rows.get(name);
          return row ? [row.count, row.total_ns, row.self_ns] : [0, 0, 0];
        }),
      ]),
  );
}

async function rowsOf(client: Client, { selectors, shift, payload }: TotaledTrace, { begin, end }: Span) {
  const answer = await client.view<TraceSelection>('trace/selection', selectors, {
    ...rangeParams(begin - shift, end - shift),
    ...(payload.python ? { python: 'true' } : {}),
  });
  if (answer.state !== 'ready') {
    throw new Error('The trace is being loaded. Try again when it is ready.');
  }
  return answer.payload.rows;
}
