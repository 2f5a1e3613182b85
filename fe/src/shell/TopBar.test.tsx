import { screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import type { ViewAnswer, WorkerInfo } from '../api/types';
import { draw, serveGoldens } from '../testing/view';
import { runLabel, TopBar } from './TopBar';

serveGoldens({});

type State = WorkerInfo['spans'][number]['state'];

const NONE = { progress: null, error: null, health: null, events: null };
const LOADING: State = {
  ...NONE,
  state: 'loading',
  progress: { stage: 'reading', bytes_done: 30, bytes_total: 120, events: 0 },
};

function badge(state: State, loading: number): string {
  const files = { failed: 0, loading: 1, ready: 0, waiting: 0 };
  const run = { name: 'run', workers: 1, dumps: 0, spans: 1, bytes: 120, files };
  const spans = [{ name: '1', label: '1', file: 'f', bytes: 120, state }];
  const answer = { view: 'memory', run: 'run', worker: 'w', span: '1', state: 'ready', loading, payload: {} };
  draw(
    <TopBar
      runs={[run as never]}
      run="run"
      workers={[{ name: 'w', rank: null, spans }]}
      answer={answer as unknown as ViewAnswer<never>}
      failed={false}
      awaiting={false}
      onHealth={() => undefined}
    />,
  );
  return screen.getByTitle(/Trace health/).textContent;
}

it('says how much has been read while a part of the file is shown already', () => {
  expect(badge(LOADING, 1)).toBe('Reading, 25%');
});

it('says that a file is read once its answer is of all of it', () => {
  expect(badge(LOADING, 0)).toBe('Read');
});

it('says that a file is read where other files of the answer are not', () => {
  expect(badge({ ...NONE, state: 'ready' }, 3)).toBe('Read');
});

it('puts the name of a tracker before that of the folder', () => {
  expect(runLabel({ name: 'wandb/run-1', tracker_name: 'batch 64' })).toBe('batch 64 (wandb/run-1)');
  expect(runLabel({ name: 'log/run', tracker_name: null })).toBe('log/run');
});
