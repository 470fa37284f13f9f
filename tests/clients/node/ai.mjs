// The AI SDK: streamText with a tool that it runs itself. Argument: base URL. Prints one line of JSON.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const provider = createOpenAICompatible({
  name: 'local', baseURL: process.argv[2], apiKey: 'none', includeUsage: true,
});
const given = [];
const result = streamText({
  model: provider('recorded'),
  maxRetries: 0,
  prompt: 'How is the weather?',
  stopWhen: stepCountIs(3),
  tools: {
    get_weather: tool({
      description: 'The weather.',
      inputSchema: z.object({ city: z.string(), days: z.number().int() }),
      execute: async (values) => { given.push(values); return 'Rain, 19 °C'; },
    }),
  },
});
let pieces = 0;
const kinds = new Set();
for await (const part of result.fullStream) {
  kinds.add(part.type);
  if (part.type === 'tool-input-delta') pieces++;
  if (part.type === 'error') throw part.error;
}
const usage = await result.totalUsage;
console.log(JSON.stringify({ content: await result.text, given, pieces, kinds: [...kinds],
                             tokens: usage.outputTokens }));
