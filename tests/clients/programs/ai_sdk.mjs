// The AI SDK, with the provider that the second argument names.
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import { messageOf, parameters, question, tryCells, url } from "./cells.mjs";

const providers = {
  "openai-compatible": async () => {
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    return createOpenAICompatible({ name: "wfdsl", baseURL: url, apiKey: "none", includeUsage: true });
  },
  openai: async () => {
    const { createOpenAI } = await import("@ai-sdk/openai");
    return createOpenAI({ baseURL: url, apiKey: "none" });
  },
  "open-responses": async () => {
    const { createOpenResponses } = await import("@ai-sdk/open-responses");
    return createOpenResponses({ name: "wfdsl", url: `${url}/responses`, apiKey: "none" });
  },
};
const provider = await providers[process.argv[3]]();
const ask = (model, more = {}) => ({ model: provider(model), prompt: question, maxRetries: 0, ...more });

async function partsOf(model, more = {}) {
  const parts = [];
  const result = streamText({ ...ask(model, more), onError: () => {} });
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    parts.push(part);
  }
  return parts;
}

async function plain() {
  return { text: (await generateText(ask("two"))).text };
}

async function stream() {
  const parts = await partsOf("two");
  const texts = (type) => parts.filter((part) => part.type === type).map((part) => part.text);
  const pieces = texts("text-delta");
  return { text: pieces.join(""), pieces: pieces.length, progress: texts("reasoning-delta").join("") };
}

async function usage() {
  const end = (await partsOf("two")).find((part) => part.type === "finish");
  const used = [(await generateText(ask("two"))).usage, end.totalUsage];
  return { tokens: used.map((each) => [each.inputTokens, each.outputTokens]) };
}

async function tools() {
  const add = tool({ inputSchema: jsonSchema(parameters), execute: async ({ a, b }) => String(a + b) });
  // By default `openai` sends an earlier text as a reference to an item that it takes for stored.
  const providerOptions = { openai: { store: false } };
  const result = await generateText(ask("tools", { tools: { add }, stopWhen: isStepCount(5), providerOptions }));
  const remark = process.argv[3] === "openai" ? { remark: "with `store: false`" } : {};
  return { text: result.text, messages: 1 + result.steps.length, ...remark };
}

async function error() {
  return {
    unknown: await messageOf(() => generateText(ask("missing"))),
    failed: await messageOf(() => generateText(ask("broken"))),
    streamed: await messageOf(() => partsOf("broken")),
  };
}

async function cancel() {
  const abort = new AbortController();
  const result = streamText({ ...ask("slow", { abortSignal: abort.signal }), onError: () => {} });
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") {
      abort.abort();
      return { first: part.text };
    }
  }
  return {};
}

await tryCells({ plain, stream, usage, tools, error, cancel });
