import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import { App } from './app.tsx';
import { startRouting } from './route.ts';
import { fileSource } from './source.ts';
import { followAddress, followJudgement, openRun, source } from './state.ts';
import './style.css';
import { startTheme } from './theme.ts';

startTheme();
const file = fileSource();
if (file) source.value = file;
startRouting(file ? 'run' : 'runs');
if (file) openRun(file.id);
followAddress();
followJudgement();
render(<App />, document.getElementById('app') as HTMLElement);
