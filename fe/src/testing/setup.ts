// The machine may be busy with anything else, so no test relies on being quick: this bound is for those that fail.
import { configure } from '@testing-library/react';

configure({ asyncUtilTimeout: 60_000 });
