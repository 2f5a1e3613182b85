import { useQueryClient } from '@tanstack/react-query';
import { Suspense, useEffect, useRef, useState } from 'react';
import { ApiError } from '../api/client';
import type { Selectors, ViewAnswer } from '../api/types';
import { takeKeys } from '../base/browser/host';
import { takesText } from '../base/browser/typing';
import { usePrefetch, useRuns, useView, useViews, useWorkers } from '../state/queries';
import {
  SelectionContext,
  useSelectionState,
  type Selection,
  type SelectionControl,
} from '../state/selection';
import { useKeptScroll } from '../state/kept';
import type { ThemeChoice } from '../state/theme';
import { VIEWS, type ViewProps } from '../views';
import GenericView from '../views/generic';
import { Button } from '../widgets/inputs/Button';
import { ErrorBoundary } from './ErrorBoundary';
import { Failed } from './Failed';
import { HealthDrawer } from './HealthDrawer';
import { Loading } from './Loading';
import { Nav } from './Nav';
import { NoRuns, Unreachable } from './NoRuns';
import { Shortcuts } from './Shortcuts';
import { TopBar } from './TopBar';
import css from './App.module.css';

interface Props {
  theme: ThemeChoice;
  onTheme: () => void;
}

export function App({ theme, onTheme }: Props) {
  const control = useSelectionState();
  return (
    <SelectionContext value={control}>
      <Shell control={control} theme={theme} onTheme={onTheme} />
    </SelectionContext>
  );
}

function Shell({ control, theme, onTheme }: Props & { control: SelectionControl }) {
  const { selection } = control;
  const [healthOpen, setHealthOpen] = useState(false);
  const [helpOpen, setHelpOpen] = useState(false);
  const runs = useRuns();
  const known = runs.data?.runs ?? [];
  const run = selection.run ?? known[0]?.name;
  const workers = useWorkers(known.length > 0 ? run : undefined);
  const selectors: Selectors = { run, worker: selection.worker, span: selection.span };
  const slug = VIEWS[selection.view]?.opens ?? selection.view;
  const answer = useView<never>(slug, selectors, serverParams(selection), known.length > 0);
  const views = useViews(known.length > 0 ? selectors : {});
  const prefetch = usePrefetch(selectors);
  const near = (slug: string) => {
    fetchCode(slug);
    if (VIEWS[slug]?.slow) {
      prefetch(slug);
    }
  };
  useEffect(() => fetchCode(selection.view), [selection.view]); // while the server answers
  useEffect(() => takeKeys(focusPage), []);
  const page = useRef<HTMLElement>(null);
  const drawn = answer.data?.state === 'ready' || answer.error !== null;
  useKeptScroll(page, 'page', drawn);

  const queries = useQueryClient();
  const asked = [run, selection.worker, selection.span, answer.data?.state, answer.error?.message].join('\n');
  useEffect(() => {
    // A file that has just been read (or has failed) changes what is known of its run.
    if (asked) {
      for (const key of ['workers', 'runs', 'views', 'health']) {
        void queries.invalidateQueries({ queryKey: [key] });
      }
    }
  }, [queries, asked]);

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (takesText(event.target) || event.ctrlKey || event.metaKey || event.altKey) {
        return;
      }
      if (event.key === '?') {
        setHelpOpen(open => !open);
      } else if (event.key === 'h') {
        setHealthOpen(open => !open);
      } else if (event.key === 't') {
        onTheme();
      } else if (event.key === 'r' || event.key === 'w') {
        event.preventDefault();
        document.querySelector<HTMLButtonElement>(`[data-picker=${event.key}] button`)?.click();
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [onTheme]);

  return (
    <div className={css.app}>
      <Button look="primary" className={css.skip} onClick={focusPage}>
        Skip to the answer
      </Button>
      <Nav
        views={views.data?.views ?? []}
        selectors={selectors}
        onNear={near}
        theme={theme}
        onTheme={onTheme}
        onHealth={() => setHealthOpen(true)}
        onHelp={() => setHelpOpen(true)}
      />
      <div className={css.main}>
        <TopBar
          runs={known}
          run={run}
          workers={workers.data?.workers ?? []}
          answer={answer.data}
          failed={answer.error instanceof ApiError && answer.error.status === 422}
          onHealth={() => setHealthOpen(true)}
        />
        <main
          className={css.page}
          id="page"
          ref={page}
          tabIndex={-1}
          data-shown={drawn ? `${selection.view} ${run}` : undefined}
        >
          <ErrorBoundary key={`${selection.view}/${run}`}>
            <Page
              runs={runs}
              view={selection.view}
              answer={answer}
              run={run}
              title={views.data?.views.find(v => v.slug === selection.view)?.title}
            />
          </ErrorBoundary>
        </main>
      </div>
      <HealthDrawer
        run={run}
        problems={runs.data?.problems ?? []}
        others={runs.data?.others ?? null}
        open={healthOpen}
        onClose={() => setHealthOpen(false)}
      />
      <Shortcuts open={helpOpen} onClose={() => setHelpOpen(false)} />
    </div>
  );
}

const focusPage = () => document.getElementById('page')?.focus({ preventScroll: true });

/** Whatever goes wrong here goes wrong again, and is said, when the view is drawn. */
function fetchCode(slug: string) {
  VIEWS[slug]?.load().catch(() => undefined);
}

/** Parameters that only the page needs stay out of the request; a view that is not drawn here gets all. */
function serverParams({ view, params }: Selection): Record<string, string> {
  const entry = VIEWS[view];
  if (!entry) {
    return params;
  }
  return Object.fromEntries(Object.entries(params).filter(([name]) => entry.takes.includes(name)));
}

interface PageProps {
  runs: ReturnType<typeof useRuns>;
  /** The tab. */
  view: string;
  answer: ReturnType<typeof useView<never>>;
  run: string | undefined;
  title: string | undefined;
}

function Page({ runs, view, answer, run, title }: PageProps) {
  if (runs.error && !runs.data) {
    return <Unreachable error={runs.error} />;
  }
  if (!runs.data || (runs.data.scanning && runs.data.runs.length === 0)) {
    return <Loading run="" progress={null} reading="Looking for traces" />;
  }
  if (runs.data.runs.length === 0) {
    return <NoRuns root={runs.data.root} error={runs.data.error ?? null} others={runs.data.others ?? null} />;
  }
  const data: ViewAnswer<never> | undefined = answer.data;
  if (answer.error && data?.state !== 'ready') {
    return <Failed error={answer.error} run={run} />;
  }
  if (data?.state !== 'ready') {
    return <Loading run={run ?? ''} progress={data?.progress ?? null} waiting={data?.state === 'waiting'} />;
  }
  const entry = VIEWS[view];
  const crumb = [data.run, data.worker, `span ${data.span}`].join(' · ');
  if (!entry) {
    return <GenericView payload={data.payload} crumb={crumb} title={title ?? view} />;
  }
  const Component = entry.Component as React.ComponentType<ViewProps>;
  return (
    <Suspense fallback={<Loading run={data.run} progress={null} />}>
      <Component
        payload={data.payload}
        crumb={crumb}
        run={data.run}
        worker={data.worker}
        span={data.span}
        base={data.base}
      />
    </Suspense>
  );
}
