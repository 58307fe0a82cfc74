export { diagnosisJson } from '../json/diagnosis-json.ts';
export { diagnosisMarkdown } from './markdown.ts';
export { diagnosisLine, renderDiagnosis } from './text.ts';
