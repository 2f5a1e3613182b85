import { render, screen } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import { layOutElements } from '../testing/view';
import { ScrollArea } from './ScrollArea';

it.each([
  [900, -1],
  [901, 0],
])('is a stop of the Tab key only while it holds more than fits: %i px in 900', (width, tabIndex) => {
  layOutElements();
  vi.spyOn(HTMLElement.prototype, 'scrollWidth', 'get').mockReturnValue(width);
  render(<ScrollArea label="Phases">content</ScrollArea>);
  expect(screen.getByRole('region', { name: 'Phases' }).tabIndex).toBe(tabIndex);
});
