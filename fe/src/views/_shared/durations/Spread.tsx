import type { Instances } from '../../../api/types';
import { formatCount } from '../../../base/format';
import { Histogram } from '../../../widgets/charts/Histogram';

interface Props {
  instances: Instances;
  /** What one of them is called. */
  noun: string;
  onOutlier: (event: number) => void;
}

/** How durations are spread, and those far above the rest. */
export function Spread({ instances, noun, onOutlier }: Props) {
  return (
    <>
      <Histogram
        edges={instances.edges}
        counts={instances.counts}
        median={instances.median_ns!}
        p95={instances.p95_ns!}
        outliers={instances.outliers.map(each => ({ value: each.duration_ns, event: each.event }))}
        onOutlier={outlier => onOutlier(outlier.event)}
      />
      {instances.far_out > 0 && (
        <p className="dim">
          {formatCount(instances.far_out)} far above the rest; a click on a mark shows the {noun} on the
          timeline.
        </p>
      )}
    </>
  );
}
