// What the reader and its worker share: the questions, the messages, and how a question is answered.
import type { Client } from '../../api/client';
import type { ErrorInfo, Selectors, TraceCounters, TraceTile, ViewAnswer } from '../../api/types';
import type { Names } from '../contract';
import { decodeSamples, decodeTile, type Samples, type Tile } from './tile';

export interface Question {
  part: 'tile' | 'blame' | 'counters';
  selectors: Selectors;
  params: Record<string, string>;
}

/** To the worker: a question by number, with the address that its routes are found from, or that it is void. */
export type Order = { id: number; base: string; question: Question } | { id: number; abort: true };

/** From the worker: what was asked, or why it could not be had. */
export type Reply =
  | { id: number; data: Tile | Samples }
  | { id: number; message: string; refused: { status: number; info: ErrorInfo } | null };

/** The answer to a question, wherever this runs. */
export async function answer(
  client: Client,
  { part, selectors, params }: Question,
  signal: AbortSignal,
): Promise<Tile | Samples> {
  const ask = async <T>() => ready(await client.view<T>(`trace/${part}`, selectors, params, signal));
  return part === 'counters' ? decodeSamples(await ask<TraceCounters>()) : decodeTile(await ask<TraceTile>());
}

/** Names that stand in no tile, by code. */
export async function askNames(
  client: Client,
  selectors: Selectors,
  codes: readonly number[],
): Promise<Names> {
  const params = { codes: codes.join(',') };
  return ready(await client.view<Names>('trace/names', selectors, params));
}

function ready<T>(found: ViewAnswer<T>): T {
  if (found.state !== 'ready') {
    throw new Error('the trace is being read again');
  }
  return found.payload;
}
