// The entry of a report: one file that holds the page and its answers.
import { embeddedClient, type Report } from './api/embedded';
import { mount } from './mount';

void mount(embeddedClient(JSON.parse(document.getElementById('report')!.textContent) as Report));
