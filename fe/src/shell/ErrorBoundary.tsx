import { Component, type ReactNode } from 'react';
import { Answer } from '../widgets/Answer';
import { Code } from '../widgets/Code';

/** A defect in one view leaves the rest of the page alive and says what happened. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) {
      return this.props.children;
    }
    return (
      <>
        <Answer
          crumb="A bug in this page"
          why="The other views still work. The text below helps to find the cause."
        >
          This view could not be drawn.
        </Answer>
        <Code>{`${error.message}\n${error.stack ?? ''}`}</Code>
      </>
    );
  }
}
