// What pages do beyond HTML: follow changes, submit filters while typing. Pages are written by the server only; what
// comes from it is compared with what is shown, and only the difference is changed, so that focus, selection and opened
// parts stay.
import { h, render } from "./preact.js";

const main = document.getElementById("main");

/** The virtual nodes of DOM nodes that the server has written. Texts stay texts. */
function virtual(nodes) {
  return Array.from(nodes, (node) => {
    if (node.nodeType === Node.TEXT_NODE) return node.data;
    if (node.nodeType !== Node.ELEMENT_NODE) return null;
    const attributes = {};
    for (const { name, value } of node.attributes) {
      attributes[name] = value === "" && typeof node[name] === "boolean" ? true : value;
    }
    if (node.id) attributes.key = node.id;
    return h(node.localName, attributes, virtual(node.childNodes));
  });
}

/** Give the field that is being typed into, in a page that is about to be shown, what has been typed meanwhile. */
function keepTyped(next) {
  const field = document.activeElement;
  if (!field?.form?.matches("[data-autosubmit], [data-autopost]") || !field.name) return;
  const other = next.querySelector(`form[data-autosubmit], form[data-autopost]`)?.elements.namedItem(field.name);
  if (!other) return;
  if (other.localName === "textarea") other.textContent = field.value;
  else if (other.localName === "input") other.setAttribute("value", field.value);
}

let latest = 0;

/** Show the page at an address, or what it answers to a form, in place of this one. */
export async function show(address, body) {
  const turn = ++latest;
  const answer = await fetch(address, { cache: "no-cache", method: body ? "POST" : "GET", body });
  const text = await answer.text();
  if (turn !== latest) return;
  const page = new DOMParser().parseFromString(text, "text/html");
  const next = page.getElementById("main");
  if (!next) return;
  if (body && !next.querySelector("form[data-autopost]")) throw new Error(next.querySelector("[role=alert]")?.textContent);
  keepTyped(next);
  render(virtual(next.childNodes), main);
  for (const name of ["data-version", "data-live"]) {
    if (next.hasAttribute(name)) main.setAttribute(name, next.getAttribute(name));
    else main.removeAttribute(name);
  }
  document.title = page.title;
  document.dispatchEvent(new Event("wfdsl:shown"));
}

function follow() {
  render(virtual(main.childNodes), main); // what is shown now is what the next page is compared with
  if (!main.dataset.live) return;
  const address = new URL(main.dataset.live, location.href);
  address.searchParams.set("since", main.dataset.version);
  let waiting = null;
  const source = new EventSource(address);
  source.addEventListener("change", () => {
    waiting ??= setTimeout(() => {
      waiting = null;
      show(location.href);
    }, document.hidden ? 5000 : 200);
  });
  addEventListener("pagehide", () => source.close());
}

function submitWhileTyping() {
  let waiting = null;
  // What costs something waits until its price is that of what was typed.
  const lockPriced = (locked) => {
    for (const button of main.querySelectorAll("[data-priced]")) button.disabled = locked;
  };
  const submit = (form) => {
    waiting = null;
    const address = new URL(form.action, location.href);
    for (const [name, value] of new FormData(form)) if (value) address.searchParams.set(name, value);
    history.replaceState(null, "", address);
    show(address.href);
  };
  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (!form || !form.matches("[data-autosubmit]")) return;
    clearTimeout(waiting);
    lockPriced(true);
    waiting = setTimeout(() => submit(form), event.target.matches("select") ? 0 : 250);
  });
  document.addEventListener("wfdsl:shown", () => lockPriced(waiting !== null));
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-autosubmit]")) return;
    event.preventDefault();
    clearTimeout(waiting);
    submit(event.target);
  });
}

const SHARED = /^(pool$|param\.)/; // fields that addresses hold, besides the text

/** A text as addresses hold it: base64url of UTF-8. */
function encoded(text) {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
  return btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function decoded(text) {
  const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder().decode(Uint8Array.from(bytes, (char) => char.charCodeAt(0)));
}

/** The playground: what is typed is checked and drawn, and the address holds it. */
function checkWhileTyping() {
  const form = main.querySelector("form[data-autopost]");
  if (!form) return;
  const { text, form: kind } = form.elements;
  let waiting = null;
  const fields = () => new URLSearchParams(new FormData(form));
  const keep = () => {
    const held = new URLSearchParams([[kind.value, encoded(text.value)]]);
    for (const [name, value] of fields()) if (value && SHARED.test(name)) held.set(name, value);
    history.replaceState(null, "", `#${held}`);
  };
  const say = (message) => {
    const copy = main.cloneNode(true);
    copy.querySelector("#problem").textContent = message;
    render(virtual(copy.childNodes), main);
  };
  const check = async (sent = fields()) => {
    waiting = null;
    try {
      await show(form.getAttribute("action"), sent);
    } catch (error) {
      say(error instanceof TypeError ? "The server does not answer." : error.message);
    }
    keep();
  };
  const open = () => {
    const held = new URLSearchParams(location.hash.slice(1));
    const name = ["wf", "completion"].find((each) => held.has(each));
    if (!name) return keep();
    try {
      [kind.value, text.value] = [name, decoded(held.get(name))];
    } catch {
      return say("The address holds no text that can be read.");
    }
    const sent = fields();
    for (const name of [...sent.keys()]) if (SHARED.test(name)) sent.delete(name);
    for (const [name, value] of held) if (SHARED.test(name)) sent.set(name, value);
    check(sent); // shows the fields of the parameters, with these values
  };
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    for (const button of form.querySelectorAll("[data-priced]")) button.disabled = true;
    keep();
    waiting = setTimeout(check, 150);
  });
  document.addEventListener("wfdsl:shown", () => {
    for (const button of form.querySelectorAll("[data-priced]")) button.disabled = waiting !== null;
  });
  addEventListener("hashchange", open);
  open();
}

/** The step that the address names, as in #step=2. */
function chosenStep() {
  const found = /^#step=([0-9.]+)$/.exec(decodeURIComponent(location.hash));
  return found && found[1];
}

/** Mark the chosen step in the view, and show what its worker saw beside it. */
async function showChosen(scroll) {
  const panel = document.getElementById("selected");
  if (!panel) return;
  const step = chosenStep();
  for (const element of main.querySelectorAll("[data-steps]")) {
    const isChosen = step !== null && element.dataset.steps.split(" ").includes(step);
    element.classList.toggle("chosen", isChosen);
    if (!isChosen) continue;
    for (let outer = element.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
    if (scroll) element.scrollIntoView({ block: "nearest" });
  }
  panel.parentElement.classList.toggle("open", step !== null);
  panel.hidden = step === null;
  if (step === null) return;
  const answer = await fetch(`${location.pathname}/steps/${step}`, { cache: "no-cache" });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (step !== chosenStep()) return;
  const content = page.getElementById("step") ?? page.getElementById("main");
  const close = h("button", { type: "button", class: "close", "data-close": "" }, "Close");
  render([close, ...virtual(content.childNodes)], panel);
  if (scroll) panel.scrollTop = 0;
}

function chooseSteps() {
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button) return;
    if (event.target.closest("[data-close]")) {
      const step = chosenStep();
      history.pushState(null, "", location.pathname + location.search);
      showChosen(false);
      main.querySelector(`[data-steps~="${step}"] a, a[data-steps~="${step}"]`)?.focus();
      return;
    }
    const kept = event.target.closest("a[data-keep-hash]");
    if (kept && chosenStep()) kept.hash = location.hash;
    const link = event.target.closest("a[data-step], a[data-steps]");
    if (!link || !document.getElementById("selected")) return;
    event.preventDefault();
    location.hash = `step=${link.dataset.step ?? link.dataset.steps.split(" ")[0]}`;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.querySelector("[data-close]")?.click();
  });
  addEventListener("hashchange", () => showChosen(true));
  document.addEventListener("wfdsl:shown", () => showChosen(false));
  showChosen(true);
}

/** j and k walk through runs or steps, Enter opens one, / goes to the search, ? says so. */
function useKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const links = Array.from(main.querySelectorAll("td.question a, .step-head a.name"));
    const at = links.indexOf(document.activeElement);
    if (event.key === "j") links[Math.min(at + 1, links.length - 1)]?.focus();
    else if (event.key === "k") links[Math.max(at - 1, 0)]?.focus();
    else if (event.key === "/") main.querySelector("input[type=search]")?.focus();
    else if (event.key === "?") document.getElementById("keys").hidden ^= true;
    else return;
    event.preventDefault();
  });
}

/** Links to an export copy it instead, and say so. */
function copyExports() {
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-copy]");
    if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    const label = link.textContent;
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error(answer.statusText);
      await navigator.clipboard.writeText(await answer.text());
      link.textContent = "copied";
    } catch {
      location.href = link.href;
    }
    setTimeout(() => (link.textContent = label), 1500);
  });
}

submitWhileTyping();
follow();
checkWhileTyping();
chooseSteps();
useKeys();
copyExports();
