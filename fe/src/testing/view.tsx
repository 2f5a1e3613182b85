// Draws views in tests as the page does, with golden payloads written by the Python tests.
import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { fireEvent, render, screen, waitFor } from '@testing-library/react';
import { Suspense, type ComponentType, type ReactElement } from 'react';
import { beforeEach, vi } from 'vitest';
import { httpClient } from '../api/client';
import type { Selectors } from '../api/types';
import { ClientContext } from '../state/queries';
import { SelectionContext, useSelectionState } from '../state/selection';
import { StepNounContext } from '../state/steps';
import type { ViewProps } from '../views';

export type Payloads = Record<string, unknown>;

interface Options {
  /** Parameters in the address. */
  params?: Record<string, string>;
  base?: Required<Selectors>;
  /** What the run calls a step. */
  noun?: string;
}

const WIDTH = 900;
const HEIGHT = 600;

class Observer implements ResizeObserver {
  constructor(private readonly callback: ResizeObserverCallback) {}
  observe(target: Element): void {
    const contentRect = new DOMRect(0, 0, WIDTH, HEIGHT);
    this.callback([{ target, contentRect } as unknown as ResizeObserverEntry], this);
  }
  unobserve(): void {}
  disconnect(): void {}
}

/** A canvas context that accepts every call; drawings are tested where they are computed. */
const canvas = new Proxy({} as CanvasRenderingContext2D, {
  get: (_, name) => {
    if (name === 'canvas') {
      return document.body;
    }
    return name === 'measureText' ? (text: string) => ({ width: 6 * text.length }) : () => canvas;
  },
  set: () => true,
});

/** Give every element a size and every canvas a context until the test ends, like a browser. */
export function layOutElements(): void {
  vi.stubGlobal('ResizeObserver', Observer);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(HEIGHT);
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(WIDTH);
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(canvas as never);
}

/** In all tests of this file, lay out elements and answer requests with `payloads`. */
export function serveGoldens(payloads: Payloads): void {
  beforeEach(() => {
    layOutElements();
    answerWith(payloads);
  });
}

/** A part that is still being computed. */
export const LOADING = Symbol('loading');

/** Answer requests with `payloads` until the test ends. */
function answerWith(payloads: Payloads): void {
  vi.stubGlobal('fetch', (address: URL | string) => {
    const url = new URL(address);
    const slug = url.pathname.replace(/^\/(?:view\/)?/, '');
    const payload = payloads[slug];
    const about = { view: slug, run: 'run', worker: 'w', span: '1' };
    const answer =
      payload === LOADING
        ? { ...about, state: 'loading', progress: null }
        : { ...about, state: 'ready', loading: 0, payload };
    return Promise.resolve(
      payload === undefined
        ? new Response(
            '{"error": {"code": "not_found", "message": "missing", "where": null, "hint": null}}',
            {
              status: 404,
            },
          )
        : new Response(JSON.stringify(url.pathname.startsWith('/view/') ? answer : payload)),
    );
  });
}

export function drawView(
  View: ComponentType<never> | ComponentType<ViewProps>,
  payload: unknown,
  { params, base, noun }: Options = {},
) {
  const Component = View as ComponentType<ViewProps>;
  return draw(
    <Component
      payload={payload as never}
      crumb="run · w · span 1"
      run="run"
      worker="w"
      span="1"
      base={base ?? null}
    />,
    params,
    noun,
  );
}

/** Draw a part of the page inside the contexts of the page, with `params` in the address. */
export function draw(element: ReactElement, params: Record<string, string> = {}, noun = 'step') {
  const parts = Object.entries({ run: 'run', ...params }).map(
    ([key, value]) => `p.pytorch_profiler.${key}=${encodeURIComponent(value)}`,
  );
  location.hash = `#${['pytorch_profiler', ...parts].join('&')}`;
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const client = httpClient(new URL('http://localhost/'));
  function Page() {
    return (
      <SelectionContext value={useSelectionState()}>
        <Suspense fallback="Reading">{element}</Suspense>
      </SelectionContext>
    );
  }
  const rendered = render(
    <MantineProvider env="test">
      <QueryClientProvider client={queries}>
        <ClientContext value={client}>
          <StepNounContext value={noun}>
            <Page />
          </StepNounContext>
        </ClientContext>
      </QueryClientProvider>
    </MantineProvider>,
  );
  /** Wait until every requested answer has arrived. */
  const settled = () =>
    waitFor(() => {
      if (queries.isFetching() > 0) {
        throw new Error('answers are missing');
      }
    });
  return { ...rendered, settled };
}

/** The text of an element, with plain spaces where a number is joined with its unit. */
export const drawnText = (element: Element | null): string => element!.textContent!.replaceAll('\u00a0', ' ');

/** Return the drawn text of a sentence of the server, without the backticks around code. */
export const textOf = (phrases: readonly { text: string }[]): string =>
  phrases
    .map(({ text }) => text)
    .join('')
    .replaceAll('`', '');

/** Pick an option of a select by the names of both. */
export async function pick(select: string, option: string): Promise<void> {
  fireEvent.click(screen.getByRole('combobox', { name: select }));
  fireEvent.click(await screen.findByRole('option', { name: option }));
}

/** Return a function that draws a view with changes of its payload and of its parts, and returns all texts. */
export const texts =
  (View: ComponentType<never> | ComponentType<ViewProps>, slug: string, goldens: Payloads) =>
  (changes: object = {}, { parts = {}, ...options }: Options & { parts?: Payloads } = {}) =>
  async (): Promise<string> => {
    layOutElements();
    answerWith({ ...goldens, ...parts });
    const { settled } = drawView(View, { ...(goldens[slug] as object), ...changes }, options);
    await settled();
    return readTexts();
  };

/** The same of an element that asks for its own payloads. */
export const textsOf =
  (element: ReactElement, payloads: Payloads = {}, params: Record<string, string> = {}) =>
  async (): Promise<string> => {
    layOutElements();
    answerWith(payloads);
    const { settled } = draw(element, params);
    await settled();
    return readTexts();
  };

/** Longest text of an element that is read as one; longer ones are whole panels. */
const MAX_TEXT = 600;
const READ_ATTRIBUTES = [
  'title',
  'aria-label',
  'aria-valuetext',
  'placeholder',
  'data-picture',
  'data-legend',
];

/** Return all texts of the page with tooltips and accessible names, one a line. */
export function readTexts(): string {
  const lines = [...document.body.querySelectorAll('*')].flatMap(element => [
    element.textContent ?? '',
    ...READ_ATTRIBUTES.map(name => element.getAttribute(name) ?? ''),
  ]);
  return [...new Set(lines.filter(line => line.length < MAX_TEXT))]
    .map(line => line.replace(/\s+/g, ' ').trim())
    .join('\n');
}
