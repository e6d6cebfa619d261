/** Tool definitions to send along, synthesised: as many as asked for, of the size such definitions have in the wild. */
import type { ToolDefinition } from '../core/request.ts';

/** More tools than this no API takes. */
export const MAX_TOOLS = 128;

const ACTIONS = ['search', 'list', 'read', 'create', 'update', 'cancel', 'send', 'book'] as const;
const THINGS = ['orders', 'documents', 'messages', 'events', 'customers', 'tickets', 'invoices', 'places'] as const;

/** `count` different tools with three parameters each, some 90 tokens apiece. The same in every run: they are a prefix. */
export function syntheticTools(count: number): readonly ToolDefinition[] {
  return Array.from({ length: count }, (_, i) => {
    const action = ACTIONS[i % ACTIONS.length] as string;
    const thing = THINGS[Math.floor(i / ACTIONS.length) % THINGS.length] as string;
    const again = Math.floor(i / (ACTIONS.length * THINGS.length));
    return {
      name: `${action}_${thing}${again === 0 ? '' : `_${again + 1}`}`,
      description: `Use this to ${action} ${thing} on behalf of the user, when the conversation calls for it.`,
      parameters: {
        type: 'object',
        properties: {
          query: { type: 'string', description: `Which ${thing} are meant, in the user's words` },
          limit: { type: 'integer', description: 'The most results to return', minimum: 1, maximum: 100 },
          order: { type: 'string', enum: ['newest', 'oldest', 'relevance'] },
        },
        required: ['query'],
      },
    };
  });
}
