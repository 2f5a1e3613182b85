import { describe, expect, it } from 'vitest';
import { formatHash, parseHash } from './host';

describe('state in the address', () => {
  it('survives the way there and back, whatever the names hold', () => {
    const state = { view: 'overview', run: 'a b/ü&p.x=1#', worker: 'host_1.2' };
    expect(parseHash(formatHash(state))).toEqual(state);
  });

  it('leaves the parts of other plugins and damaged ones alone', () => {
    expect(parseHash('#scalars&p.other.run=x&p.pytorch_profiler.run=%E0%A4%A')).toEqual({});
  });
});
