import type { CallDistribution } from '../../../api/types';
import { formatCount } from '../../../base/format';
import { Histogram } from '../../../widgets/charts/Histogram';
import { SavePicture } from '../../../widgets/charts/SavePicture';
import css from './DurationHistogram.module.css';

interface Props {
  instances: CallDistribution;
  /** The word for one of them. */
  noun: string;
  /** The name of what they are durations of. */
  of: string;
  color: string;
  onOutlier: (event: number) => void;
}

/** The distribution of durations, with the outliers far above the rest. */
export function DurationHistogram({ instances, noun, of, color, onOutlier }: Props) {
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
          {formatCount(instances.far_out)} far above the rest; click a mark to show the {noun} on the
          timeline.
        </p>
      )}
      <figcaption>
        <SavePicture name={`time_per_${noun}_of_${of}`} />
      </figcaption>
    </figure>
  );
}
