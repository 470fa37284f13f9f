// openai-node: a stream, and runTools with a whole round trip. Arguments: base URL. Prints one line of JSON.
import OpenAI from 'openai';

const [baseURL, mode] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
const parameters = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer' } },
  required: ['city', 'days'],
  additionalProperties: false,
};
const messages = [{ role: 'user', content: 'How is the weather?' }];

if (mode === 'stream') {
  const tools = [{ type: 'function', function: { name: 'get_weather', parameters } }];
  const stream = client.chat.completions.stream({ model: 'recorded', messages, tools });
  let pieces = 0;
  stream.on('tool_calls.function.arguments.delta', () => pieces++);
  const message = await stream.finalMessage();
  const [call] = message.tool_calls;
  console.log(JSON.stringify({ content: message.content, name: call.function.name, pieces,
                               arguments: JSON.parse(call.function.arguments) }));
} else {
  const given = [];
  const get_weather = (values) => { given.push(values); return 'Rain, 19 °C'; };
  const runner = client.chat.completions.runTools({
    model: 'recorded',
    messages,
    stream: mode === 'runToolsStream',
    tools: [{ type: 'function', function: { name: 'get_weather', description: 'The weather.', parameters,
                                            function: get_weather, parse: JSON.parse } }],
  });
  console.log(JSON.stringify({ content: await runner.finalContent(), given }));
}
