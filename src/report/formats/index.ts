/** Other forms of a report: for spreadsheets, for Markdown, and in the shapes and by the definitions of other tools. */
import { toAiperf } from './aiperf.ts';
import { toGuidellm } from './guidellm.ts';
import type { ToolInput } from './tool.ts';
import { toVllm } from './vllm.ts';

export { CSV_COLUMNS, csvHeader, csvRow } from './csv.ts';
export { reportMarkdown } from './markdown.ts';
export { type Definition, SeenReducer, type ToolInput } from './tool.ts';

export const TOOL_FORMATS = { vllm: toVllm, guidellm: toGuidellm, aiperf: toAiperf } as const satisfies Record<
  string,
  (input: ToolInput) => object
>;
export type ToolFormat = keyof typeof TOOL_FORMATS;
export const FORMATS = ['text', 'json', 'csv', 'md', 'html', 'vllm', 'guidellm', 'aiperf'] as const;
export type Format = (typeof FORMATS)[number];
