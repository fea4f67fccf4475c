// openai-node, chat completions.
import OpenAI from "openai";
import { messageOf, parameters, question, tryCells, url } from "./cells.mjs";

const client = new OpenAI({ baseURL: url, apiKey: "none" });
const ask = (model, more = {}) =>
  client.chat.completions.create({ model, messages: [{ role: "user", content: question }], ...more });

async function chunksOf(model, more = {}) {
  const chunks = [];
  for await (const chunk of await ask(model, { stream: true, ...more })) chunks.push(chunk);
  return chunks;
}

async function plain() {
  return { text: (await ask("two")).choices[0].message.content };
}

async function stream() {
  const deltas = (await chunksOf("two")).map((chunk) => chunk.choices[0].delta);
  const pieces = deltas.map((delta) => delta.content).filter(Boolean);
  const progress = deltas.map((delta) => delta.reasoning_content ?? "").join("");
  return { text: pieces.join(""), pieces: pieces.length, progress };
}

async function usage() {
  const chunks = await chunksOf("two", { stream_options: { include_usage: true } });
  const used = [(await ask("two")).usage, ...chunks.map((chunk) => chunk.usage).filter(Boolean)];
  return { tokens: used.map((each) => [each.prompt_tokens, each.completion_tokens]) };
}

async function tools() {
  const add = ({ a, b }) => String(a + b);
  const runner = client.chat.completions.runTools({
    model: "tools",
    messages: [{ role: "user", content: question }],
    tools: [{ type: "function", function: { name: "add", function: add, parse: JSON.parse, parameters } }],
  });
  const text = await runner.finalContent();
  return { text, messages: runner.messages.length - 1 };
}

async function error() {
  return {
    unknown: await messageOf(() => ask("missing")),
    failed: await messageOf(() => ask("broken")),
    streamed: await messageOf(() => chunksOf("broken")),
  };
}

async function cancel() {
  const chunks = await ask("slow", { stream: true });
  for await (const chunk of chunks) {
    const first = chunk.choices[0].delta.content;
    if (first) {
      chunks.controller.abort();
      return { first };
    }
  }
  return {};
}

await tryCells({ plain, stream, usage, tools, error, cancel });
