import type { Overview, Selectors } from '../api/types';
import { formatRatio } from '../base/format';
import { useView } from '../state/queries';
import { idleShare } from '../views/overview/select';
import css from './Nav.module.css';

/** How much the device waits, beside the tab that says why: the Overview's figure, made where the trace was read. */
export function IdleShare({ selectors }: { selectors: Selectors }) {
  const { data } = useView<Overview>('overview/preview', selectors, {});
  const share = data?.state === 'ready' ? idleShare(data.payload) : null;
  return (
    share !== null && (
      <span className={css.count} title="So much of the time the device waits">
        {formatRatio(share)}
      </span>
    )
  );
}
