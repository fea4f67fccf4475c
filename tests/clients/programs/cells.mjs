// What the programs for Node share; cells.py says how they are used.
import { createInterface } from "node:readline";

export const url = process.argv[2];
export const question = "Why?";

export const parameters = {
  type: "object",
  properties: { a: { type: "integer" }, b: { type: "integer" } },
  required: ["a", "b"],
  additionalProperties: false,
};

export async function messageOf(work) {
  try {
    await work();
    return "";
  } catch (error) {
    return `${error.name}: ${error.message} ${error.responseBody ?? ""}`;
  }
}

export async function tryCells(cells) {
  for await (const line of createInterface({ input: process.stdin })) {
    let found;
    try {
      found = await cells[line.trim()]();
    } catch (error) {
      found = { failure: `${error.name}: ${error.message}` };
    }
    process.stdout.write(`${JSON.stringify(found)}\n`);
  }
}
