import { charts, savePng, saveSvg } from '../../base/browser/picture';
import { Button } from '../inputs/Button';
import { Icon } from '../Icon';

/** Saves the charts of the panel or figure that these buttons are in, under a name that tells them from the others. */
export function SavePicture({ name }: { name: string }) {
  const drawn = (button: Element) => charts(button.closest('.panel, figure')!);
  return (
    <>
      <Button
        look="quiet"
        title="Save the picture as SVG"
        onClick={({ currentTarget }) => {
          const found = drawn(currentTarget);
          if (found.length > 0) {
            saveSvg(name, found);
          }
        }}
      >
        <Icon name="download" size={14} /> SVG
      </Button>
      <Button
        look="quiet"
        title="Save the picture as PNG"
        onClick={({ currentTarget }) => {
          const found = drawn(currentTarget);
          if (found.length > 0) {
            void savePng(name, found);
          }
        }}
      >
        <Icon name="download" size={14} /> PNG
      </Button>
    </>
  );
}
