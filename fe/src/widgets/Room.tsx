/** Room for words that are still to come, so that what lies below stays in its place; wraps as words do. */
export function Room({ letters }: { letters: number }) {
  return (
    <span aria-hidden="true" style={{ visibility: 'hidden' }}>
      {' '}
      {'words '.repeat(Math.ceil(letters / 6))}
    </span>
  );
}
