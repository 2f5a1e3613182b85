// What the colors of several ranks stand for: one color for what is the same on all of them.
import { useMemo } from 'react';
import type { TraceColors } from '../../../api/types';
import { useViewOfEach } from '../../../state/queries';
import type { ColorBy } from '../../../timeline/draw/colors';
import { asTheyAre, mergeColors, type Recolored } from '../../../timeline/tiles/merge';
import type { Aligned } from './source';

/** Until the legends are here, slices have the colors of their classes. */
export function useRankColors(run: string, members: readonly Aligned[], wanted: ColorBy) {
  const asked = wanted !== 'class' && wanted !== 'name';
  const { payloads } = useViewOfEach<TraceColors>(
    'trace/colors',
    members.map(({ worker, span }) => [{ run, worker, span }, { by: wanted }]),
    asked,
  );
  const recolored = useMemo(
    () =>
      asked && payloads?.every(({ by }) => by === wanted)
        ? (wanted === 'family' ? byPlace : mergeColors)(payloads.map(({ texts }) => texts))
        : wanted === 'name'
          ? asTheyAre(members)
          : undefined,
    [asked, payloads, wanted, members],
  );
  const by: ColorBy = recolored ? wanted : 'class';
  return { by, recolored };
}

/** Families have the same codes everywhere; one is named where any rank has work of it. */
const byPlace = (legends: readonly string[][]): Recolored => ({
  texts: legends[0]!.map((_, code) => legends.map(texts => texts[code]!).find(Boolean) ?? ''),
  codes: legends.map(texts => texts.map((_, code) => code)),
});
