import { describe, expect, it } from 'vitest';
import { formatHash, parseHash } from './host';

describe('state in the address', () => {
  it('survives a round trip, whatever characters names contain', () => {
    const state = { view: 'overview', run: 'a b/ü&p.x=1#', worker: 'host_1.2' };
    expect(parseHash(formatHash(state))).toEqual(state);
  });

  it('ignores the parameters of other plugins and malformed ones', () => {
    expect(parseHash('#scalars&p.other.run=x&p.pytorch_profiler.run=%E0%A4%A')).toEqual({});
  });
});
