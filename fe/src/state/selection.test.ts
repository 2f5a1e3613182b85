import { describe, expect, it } from 'vitest';
import { fromSelection, nextSelection, toSelection } from './selection';

describe('selection', () => {
  const now = toSelection({ view: 'overview', run: 'a', worker: 'w', span: '2', step: '5' });

  it('survives the way through the address', () => {
    expect(toSelection(fromSelection(now))).toEqual(now);
  });

  it('forgets worker and span with another run, parameters with another view', () => {
    expect(nextSelection(now, { run: 'b' })).toMatchObject({ run: 'b', worker: undefined, span: undefined });
    expect(nextSelection(now, { worker: 'v' })).toMatchObject({ run: 'a', worker: 'v', span: undefined });
    expect(nextSelection(now, { view: 'kernels' }).params).toEqual({});
  });
});
