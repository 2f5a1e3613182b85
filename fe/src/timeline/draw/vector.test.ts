import { describe, expect, it } from 'vitest';
import { SvgDrawing } from './vector';

const createDrawing = () =>
  new SvgDrawing(
    { font: '', measureText: text => ({ width: 6 * text.length }) as TextMetrics },
    { x: 10, y: 20, width: 100, height: 50 },
  );

describe('a drawing of shapes', () => {
  it('is what was painted, where and how', () => {
    const drawing = createDrawing();
    drawing.fillStyle = 'color(srgb 1 0.5 0)';
    drawing.globalAlpha = 0.5;
    drawing.fillRect(1, 2, 30.123, 4);
    drawing.globalAlpha = 1;
    drawing.font = '600 11px Inter';
    drawing.fillText('<mm>', 3, 4);
    expect(drawing.root.getAttribute('width')).toBe('100');
    const [box, text] = drawing.root.children;
    expect(box!.outerHTML).toContain(
      'x="1" y="2" width="30.12" height="4" fill="rgb(255, 128, 0)" opacity="0.5"',
    );
    expect(text!.textContent).toBe('<mm>');
    expect(text!.getAttribute('font-weight')).toBe('600');
    expect([...drawing.fills]).toEqual(['rgb(255, 128, 0)']);
    expect(drawing.measureText('mm').width).toBe(12);
  });

  it('cuts off what is clipped, and nothing after that', () => {
    const drawing = createDrawing();
    drawing.save();
    drawing.beginPath();
    drawing.rect(0, 5, 100, 10);
    drawing.clip();
    drawing.strokeRect(0, 0, 5, 5);
    drawing.restore();
    drawing.fillRect(0, 0, 1, 1);
    const [clipped, whole] = drawing.root.children;
    expect(clipped!.getAttribute('viewBox')).toBe('0 5 100 10');
    expect(clipped!.firstElementChild!.getAttribute('stroke')).toBe('#000');
    expect(whole!.tagName).toBe('rect');
  });

  it('draws lines, curves, circles and round corners as one path each', () => {
    const drawing = createDrawing();
    const path = (draw: () => void, end: 'fill' | 'stroke') => {
      drawing.beginPath();
      draw();
      drawing[end]();
      return drawing.root.lastElementChild!;
    };
    const line = path(() => {
      drawing.moveTo(0, 1);
      drawing.lineTo(2, 3);
      drawing.bezierCurveTo(1, 2, 3, 4, 5, 6);
      drawing.closePath();
    }, 'stroke');
    expect(line.getAttribute('d')).toBe('M0 1L2 3C1 2 3 4 5 6Z');
    expect(line.getAttribute('fill')).toBe('none');
    const circle = path(() => drawing.arc(10, 10, 3), 'fill');
    expect(circle.getAttribute('d')).toBe('M7 10A3 3 0 0 1 13 10A3 3 0 0 1 7 10');
    const box = path(() => drawing.roundRect(0, 0, 20, 10, 3), 'fill');
    expect(box.getAttribute('d')).toBe(
      'M3 0H17a3,3 0 0 1 3,3V7a3,3 0 0 1 -3,3H3a3,3 0 0 1 -3,-3V3a3,3 0 0 1 3,-3',
    );
  });
});
