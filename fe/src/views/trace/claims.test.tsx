import { fireEvent, screen, waitFor } from '@testing-library/react';
import { expect, vi } from 'vitest';
import golden from '../../../../tests/golden/payloads/trace.json';
import type { TraceMoment, TracePayload, TraceSelection } from '../../api/types';
import { tryClaims } from '../../testing/claims';
import { textsOf } from '../../testing/view';
import { Area } from './panels/Area';
import { MomentDetails } from './panels/MomentDetails';
import { Export } from './tools/Export';

const nothing = () => undefined;

const area = (rows: object[]) =>
  textsOf(
    <Area
      selection={{ ...golden['trace/selection'], rows } as unknown as TraceSelection}
      choice={null}
      classes={golden.trace.classes as TracePayload['classes']}
      time={String}
      onEvent={nothing}
      onZoom={nothing}
      onClose={nothing}
    />,
  );
const [name] = golden['trace/selection'].rows;

const moment = (category: string) =>
  textsOf(
    <MomentDetails
      moment={{ ...golden['trace/moment'], category, subject: null } as unknown as TraceMoment}
      time={String}
      onEvent={nothing}
      onMoment={nothing}
      onZoom={nothing}
      onClose={nothing}
    />,
  );

const message = (): string => document.querySelector('[aria-live=polite]')?.textContent ?? '';

const PERFETTO = 'https://ui.perfetto.dev';

/** Open Perfetto; `file` answers with the trace, and the tab opens unless it is `blocked`. */
const perfetto =
  (file: () => Promise<Response>, blocked = false) =>
  async () => {
    vi.stubGlobal('fetch', file);
    const postMessage = (message: unknown) =>
      message === 'PING' &&
      window.dispatchEvent(new MessageEvent('message', { origin: PERFETTO, data: 'PONG' }));
    vi.spyOn(window, 'open').mockReturnValue(blocked ? null : ({ postMessage } as never));
    vi.spyOn(console, 'warn').mockImplementation(nothing); // nothing is laid out here that could take the focus
    await textsOf(<Export readable="file" part="part" window={{ begin: 0, end: 1000 }} title="trace" />)();
    vi.stubGlobal('fetch', file);
    fireEvent.click(screen.getByRole('button', { name: /Perfetto/ }));
    fireEvent.click(await screen.findByRole('button', { name: 'Entire trace' }));
    await waitFor(() => expect(message()).toMatch(/^(?!Waiting)./));
    return message();
  };
const served = () => Promise.resolve(new Response('a trace'));

const KEYS = 'what keys do, and how much is listed: src/views/trace/find/search.test.ts';
const LINK = 'a link or a title';

tryClaims(
  'views/trace',
  {
    'No device work': {
      falseIf: 'the slices are device work',
      holds: area([{ ...name, family: null }]),
      other: area([{ ...name, family: 'norm' }]),
    },
    'These tracks have no slices in the selected time range. Select a longer one.': {
      falseIf: 'they have one',
      holds: area([]),
      other: area([name!]),
    },
    'nothing was recorded there': {
      falseIf: 'the host had submitted the work already',
      says: /Nothing was recorded there\./,
      holds: moment('unrecorded'),
      other: moment('kernel_gap'),
    },
    'These ranks can’t be shown on one timeline.': {
      falseIf: 'they are still read',
      triedBy:
        'src/views/trace/ranks/MergedTrace.test.tsx: reports ranks without slices instead of loading forever',
    },
    'Loading the ranks.': {
      falseIf: 'they can’t be read',
      triedBy:
        'src/views/trace/ranks/MergedTrace.test.tsx: reports ranks without slices instead of loading forever',
    },
    'only Python frames': {
      falseIf: 'the track has other slices',
      triedBy:
        'src/views/trace/trackSets.test.ts: finds the tracks with nothing to draw, unless that is all of them',
    },
    'no slice has a time': {
      falseIf: 'one has',
      triedBy:
        'src/views/trace/trackSets.test.ts: finds the tracks with nothing to draw, unless that is all of them',
    },
    'The browser blocked the new tab. Download the file and open it in Perfetto instead.': {
      falseIf: 'the tab opened',
      holds: perfetto(served, true),
      other: perfetto(served),
    },
    'TensorBoard is not responding.': {
      falseIf: 'it refuses the file',
      holds: perfetto(() => Promise.reject(new Error('no network'))),
      other: perfetto(() => Promise.resolve(new Response('', { status: 404 }))),
    },
    "The trace can't be read ({}).": {
      falseIf: 'it can',
      holds: perfetto(() => Promise.resolve(new Response('', { status: 404 }))),
      other: perfetto(served),
    },
  },
  {
    'Enter goes to the next, Shift+Enter to the previous. {}': KEYS,
    'The first {} are listed.': KEYS,
    'All calls of {}': LINK,
    'All calls of this kernel': LINK,
    'All arguments, as recorded': LINK,
    'Up to {} {}s at a time.': 'what can be chosen',
    'Opens ui.perfetto.dev, so it needs internet access. The trace is handed to that page inside your browser; it isn’t uploaded.':
      'what a button does: src/views/trace/tools/Export.test.tsx',
    'each name keeps its color; different names may share one': 'how to read colors',
    'The trace is being loaded. Try again when it is ready.': 'why nothing is saved',
    'ui.perfetto.dev is not responding. Check your internet connection.':
      'said after half a minute without an answer',
    '{} without a time, not drawn': 'a count of the server',
  },
);
