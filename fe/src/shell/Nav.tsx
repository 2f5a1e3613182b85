import { Fragment } from 'react';
import { useSelection } from '../state/selection';
import type { ThemeChoice } from '../state/theme';
import { VIEWS } from '../views';
import { Button } from '../widgets/inputs/Button';
import { Icon, type IconName } from '../widgets/Icon';
import type { Overview, Selectors, ViewInfo } from '../api/types';
import { formatRatio } from '../base/format';
import { useView } from '../state/queries';
import { idleShare } from '../views/overview/select';
import css from './Nav.module.css';

const THEME_TITLES: Record<ThemeChoice, string> = { host: 'auto', light: 'light', dark: 'dark' };

/** All views, until the server tells which of them the trace has. */
const ALL_VIEWS: ViewInfo[] = Object.entries(VIEWS).map(([slug, { title, section }]) => ({
  slug,
  title,
  section,
  available: null,
  reason: null,
}));

interface Props {
  views: ViewInfo[] | undefined;
  selectors: Selectors;
  /** The pointer or the focus is on a view with data, so it may be opened next. */
  onApproach: (slug: string) => void;
  theme: ThemeChoice;
  onTheme: () => void;
  onHealth: () => void;
  onHelp: () => void;
}

export function Nav({ views = ALL_VIEWS, selectors, onApproach, theme, onTheme, onHealth, onHelp }: Props) {
  const { selection, select } = useSelection();
  return (
    <nav className={css.nav} aria-label="Views">
      <div className={css.brand}>
        <Icon name="logo" />
        <span>Profiler</span>
      </div>
      {views.map((view, i) => (
        <Fragment key={view.slug}>
          {view.section !== (views[i - 1]?.section ?? '') && <p className={css.section}>{view.section}</p>}
          <Button
            look="bare"
            className={`${css.item} ${view.available === false ? css.without : ''}`}
            data-part="nav-item"
            aria-current={selection.view === view.slug ? 'page' : undefined}
            title={view.reason ?? view.title}
            onClick={() => select({ view: view.slug })}
            onPointerEnter={() => view.available && onApproach(view.slug)}
            onFocus={() => view.available && onApproach(view.slug)}
          >
            <Icon name={VIEWS[view.slug]?.icon ?? 'table'} />
            <span>{view.title}</span>
            {view.available === false && <span className={css.count}>no data</span>}
            {view.available && view.slug === 'idle' && <IdleShare selectors={selectors} />}
          </Button>
        </Fragment>
      ))}
      <div className={css.foot}>
        <NavAction icon="health" title="Trace health" hint="h" onClick={onHealth} />
        <NavAction icon="keyboard" title="Shortcuts" hint="?" onClick={onHelp} />
        <NavAction icon="theme" title="Theme" hint={THEME_TITLES[theme]} onClick={onTheme} plain />
      </div>
    </nav>
  );
}

interface ActionProps {
  icon: IconName;
  title: string;
  hint: string;
  plain?: boolean;
  onClick: () => void;
}

function NavAction({ icon, title, hint, plain = false, onClick }: ActionProps) {
  return (
    <Button
      look="bare"
      className={css.item}
      data-part="nav-item"
      title={`${title} (${hint})`}
      onClick={onClick}
    >
      <Icon name={icon} />
      <span>{title}</span>
      {plain ? <span className={css.count}>{hint}</span> : <kbd>{hint}</kbd>}
    </Button>
  );
}

/** The share of time the device is idle, beside the tab that explains it; the number is the Overview's. */
export function IdleShare({ selectors }: { selectors: Selectors }) {
  const { data } = useView<Overview>('overview/preview', selectors, {});
  const share = data?.state === 'ready' ? idleShare(data.payload) : null;
  return (
    share !== null && (
      <span className={css.count} title="Share of the time the device is idle">
        {formatRatio(share)}
      </span>
    )
  );
}
