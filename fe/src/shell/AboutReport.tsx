import { Modal } from '@mantine/core';
import { useState } from 'react';
import type { ReportInfo } from '../api/client';
import { plural } from '../base/format';
import { Button } from '../widgets/inputs/Button';
import { Icon } from '../widgets/Icon';
import css from './AboutReport.module.css';

/** When a report was made, of what, and what it leaves out. */
export function AboutReport({ report }: { report: ReportInfo }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <Icon name="info" size={14} /> About this report
      </Button>
      <Modal
        opened={open}
        onClose={() => setOpen(false)}
        title="About this report"
        size={560}
        centered
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <p>
          Made on {report.made} by torch-tb-profiler {report.version} from{' '}
          <span className="mono">{report.root}</span>. It holds its answers and asks nobody;{' '}
          <span className="mono">{report.command}</span> opens everything.
        </p>
        <h3>{plural(report.left_out.length, 'thing')} left out</h3>
        <ul className={css.list}>
          {report.left_out.map(text => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      </Modal>
    </>
  );
}
