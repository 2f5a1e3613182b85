import { findCharts, savePng, saveSvg } from '../../base/browser/picture';
import { Button } from '../inputs/Button';
import { Icon } from '../Icon';

/** Buttons that save the charts of the panel or figure around them; `name` becomes part of the file name. */
export function SavePicture({ name }: { name: string }) {
  const chartsAround = (button: Element) => findCharts(button.closest('.panel, figure')!);
  return (
    <>
      <Button
        look="quiet"
        title="Save the chart as SVG"
        onClick={({ currentTarget }) => {
          const charts = chartsAround(currentTarget);
          if (charts.length > 0) {
            saveSvg(name, charts);
          }
        }}
      >
        <Icon name="download" size={14} /> SVG
      </Button>
      <Button
        look="quiet"
        title="Save the chart as PNG"
        onClick={({ currentTarget }) => {
          const charts = chartsAround(currentTarget);
          if (charts.length > 0) {
            void savePng(name, charts);
          }
        }}
      >
        <Icon name="download" size={14} /> PNG
      </Button>
    </>
  );
}
