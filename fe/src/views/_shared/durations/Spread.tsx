import type { Instances } from '../../../api/types';
import { formatCount } from '../../../base/format';
import { Histogram } from '../../../widgets/charts/Histogram';
import { SavePicture } from '../../../widgets/charts/SavePicture';
import css from './Spread.module.css';

interface Props {
  instances: Instances;
  /** What one of them is called. */
  noun: string;
  /** Whose durations they are. */
  of: string;
  color: string;
  onOutlier: (event: number) => void;
}

/** How durations are spread, and those far above the rest. */
export function Spread({ instances, noun, of, color, onOutlier }: Props) {
  return (
    <figure className={css.spread}>
      <Histogram
        title={`Time per ${noun} of ${of}`}
        edges={instances.edges}
        counts={instances.counts}
        median={instances.median_ns!}
        p95={instances.p95_ns!}
        outliers={instances.outliers.map(each => ({ value: each.duration_ns, event: each.event }))}
        color={color}
        onOutlier={outlier => onOutlier(outlier.event)}
      />
      {instances.far_out > 0 && (
        <p className="dim">
          {formatCount(instances.far_out)} far above the rest; a click on a mark shows the {noun} on the
          timeline.
        </p>
      )}
      <figcaption>
        <SavePicture name={`time_per_${noun}_of_${of}`} />
      </figcaption>
    </figure>
  );
}
