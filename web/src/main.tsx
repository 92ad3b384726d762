import { render } from 'preact';
import { App } from './ui/app';
import './ui/style.css';

const place = document.querySelector('#app');
if (place !== null) render(<App />, place);
