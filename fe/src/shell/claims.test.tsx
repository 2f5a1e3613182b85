import { vi } from 'vitest';
import { ApiError } from '../api/client';
import type { ErrorInfo } from '../api/types';
import { saveFile } from '../base/browser/save';
import { tryClaims } from '../testing/claims';
import { readTexts, textsOf } from '../testing/view';
import { act } from '@testing-library/react';
import { ErrorBoundary, Failed } from './Failed';
import { HealthDrawer } from './HealthDrawer';
import { NoRuns, Unreachable } from './NoRuns';
import { Saved } from './Saved';
import { Waiting } from './Waiting';

const info = (code: string): ErrorInfo => ({ code, message: 'why', where: null, hint: null, stage: null });
const file = (state: string, notes: object[] = []) => ({
  worker: 'w',
  span: '1',
  file: 'w.json',
  bytes: 10,
  notes,
  state: { state, error: null, events: 3, progress: null, health: null },
});
const runs = { runs: [{ name: 'run', workers: 1, bytes: 10 }], problems: [], listed: true, others: null };

/** Draw the error of a file beside another one in this state. */
const failed = (state: string, code = 'unreadable') =>
  textsOf(<Failed error={new ApiError(400, info(code))} run="run" />, {
    runs,
    views: { views: [] },
    health: { files: [file('failed'), file(state)] },
  });

const health = (state: string) =>
  textsOf(<HealthDrawer run="run" problems={[]} others={null} open onClose={() => undefined} />, {
    health: { files: [file(state)] },
  });

const noRuns = (error: ErrorInfo | null) => textsOf(<NoRuns root="log" error={error} others={null} />);

const waiting = (kind: 'run' | 'worker') =>
  textsOf(<Waiting target={{ kind, name: 'x', present: [] }} root="log" run="run" />);

function Broken(): never {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  throw new Error('a bug');
}

const saved = (name: string | null) => async () => {
  await textsOf(<Saved />)();
  if (name !== null) {
    act(() => saveFile(name, 'a,b', 'text/csv'));
  }
  return readTexts();
};

tryClaims(
  'shell',
  {
    '{} of this run can be read.': {
      falseIf: 'no other has been read yet',
      holds: failed('ready'),
      other: failed('waiting'),
    },
    "This file can't be read": {
      falseIf: 'only what was asked for is missing',
      holds: failed('ready'),
      other: failed('ready', 'not_found'),
    },
    'not read yet': { falseIf: 'it was read', holds: failed('waiting'), other: failed('ready') },
    'This view failed to render.': {
      falseIf: 'it is drawn',
      holds: textsOf(
        <ErrorBoundary>
          <Broken />
        </ErrorBoundary>,
      ),
      other: textsOf(<ErrorBoundary>drawn</ErrorBoundary>),
    },
    'The other views may still work. The text below helps find the cause.': {
      falseIf: 'nothing failed',
      holds: textsOf(
        <ErrorBoundary>
          <Broken />
        </ErrorBoundary>,
      ),
      other: textsOf(<ErrorBoundary>drawn</ErrorBoundary>),
    },
    'Nothing was skipped or repaired in the files read so far.': {
      falseIf: 'none has been read',
      holds: health('ready'),
      other: health('waiting'),
    },
    'New traces appear here automatically, within seconds.': {
      falseIf: 'the folder can’t be listed',
      holds: noRuns(null),
      other: noRuns(info('storage')),
    },
    "Can't list the log folder: {}.": {
      falseIf: 'it is empty',
      holds: noRuns(info('storage')),
      other: noRuns(null),
    },
    'No traces in this folder yet.': {
      falseIf: 'it can’t be listed',
      holds: noRuns(null),
      other: noRuns(info('storage')),
    },
    'Retrying every few seconds.': {
      falseIf: 'the server answers',
      holds: textsOf(<Unreachable error={new Error('TensorBoard is not responding')} />),
      other: noRuns(null),
    },
    'Downloading {}. Didn’t get it?': {
      falseIf: 'nothing was saved',
      holds: saved('x.csv'),
      other: saved(null),
    },
    'The browser blocked copying.': {
      falseIf: 'it copied',
      triedBy: 'src/shell/Saved.test.tsx: that copying is allowed (%s) is what it says of it',
    },
    'It opens here as soon as {} in the log folder.': {
      falseIf: 'it is there',
      triedBy: 'src/shell/awaited.test.ts: is nothing while a list is unknown, or once everything is there',
    },
    "Waiting for {} '{}'.": {
      falseIf: 'another thing is awaited',
      says: /Waiting for run 'x'\./,
      holds: waiting('run'),
      other: waiting('worker'),
    },
  },
  {
    'Created on {} by torch-tb-profiler {} from {}. It works offline with the data it contains; run {} to see everything.':
      'what the report is: tests/e2e opens it without a server',
  },
);
