// An OpenAI-compatible server around a real engine (llama.cpp by way of node-llama-cpp), for end-to-end tests.
// All sequences live in one context, so that the engine batches them: a request joins and leaves the running batch
// at any step. Requests beyond `--parallel` wait in arrival order.
import http from "node:http";
import { parseArgs } from "node:util";
import { getLlama } from "node-llama-cpp";

const option = (fallback) => ({ type: "string", default: fallback });
const flags = readFlags({
    model: option(), host: option("127.0.0.1"), port: option("8080"), parallel: option("8"), threads: option("1"),
    context: option("4096"), "model-name": option("tiny-llama"),
});
if (!flags.model) fatal("no model: give --model FILE.gguf");
const [port, parallel, threads, contextSize] = ["port", "parallel", "threads", "context"].map((name) => {
    const value = Number(flags[name]);
    if (!Number.isInteger(value) || value < (name === "port" ? 0 : 1)) fatal(`--${name} must be a whole number, not '${flags[name]}'`);
    return value;
});
const created = Math.floor(Date.now() / 1000);
let engine = null;                   // { llama, model, filler } once loaded
let requestCount = 0;

function readFlags(options) {
    try { return parseArgs({ options }).values; }
    catch (error) { return fatal(error.message); }
}

function fatal(message) {
    console.error(`server.mjs: ${message}`);
    process.exit(1);
}

class RequestError extends Error {
    constructor(status, message, code = null) {
        super(message);
        this.status = status;
        this.body = { error: { message, type: status < 500 ? "invalid_request_error" : "server_error", param: null, code } };
    }
}
const invalid = (message, code) => new RequestError(400, message, code);

// --- sequences: at most `parallel` at once, the rest waits first in, first out ---

const idle = [], waiting = [];       // idle: { slot, sequence }, lowest slot first

function acquire(signal) {
    if (idle.length > 0) return idle.shift();
    return new Promise((resolve, reject) => {
        const waiter = { resolve };
        waiting.push(waiter);
        signal.addEventListener("abort", () => {
            const at = waiting.indexOf(waiter);
            if (at < 0) return;      // it has got its sequence already
            waiting.splice(at, 1);
            reject(signal.reason);
        });
    });
}

function release(place) {
    if (waiting.length > 0) waiting.shift().resolve(place);
    else idle.push(place), idle.sort((a, b) => a.slot - b.slot);
}

// --- steps: the running sequences ask for their next token together ---
// The engine batches what it finds in its queue, and computes neighbouring sequences at once only where they stand
// there in order. Left to themselves, sequences drift apart into batches of one and seven. So all wait for the last
// of the step before, then go in the order of their slots. A first step (the prompt) is not waited for: long prompts
// are cut into pieces, and the others go on between them.

const ready = [];
let asking = 0, opening = false;   // sequences that are in a step and waited for; a next step is about to open

function openStep() {
    if (opening || asking > 0 || ready.length === 0) return;
    opening = true;
    setImmediate(() => {             // let the last one ask, too
        opening = false;
        for (const { enter, first } of ready.splice(0).sort((a, b) => a.slot - b.slot)) {
            asking += first ? 0 : 1;
            enter();
        }
    });
}

async function step(tokens, slot, first, replacement) {
    await new Promise((enter) => { ready.push({ enter, slot, first }); openStep(); });
    try { return await tokens.next(replacement); }
    finally { asking -= first ? 0 : 1; openStep(); }
}

// What goes into one batch of the engine: next tokens first, then prompts in order of arrival as far as they fit.
function shareBatch({ items, size }) {
    const isPrompt = (item) => item.tokens.length > 1;
    let left = size;
    return [...items].sort((a, b) => isPrompt(a) - isPrompt(b)).flatMap((item) => {
        const processAmount = Math.min(item.tokens.length, left);
        left -= processAmount;
        return processAmount > 0 ? [{ item, processAmount }] : [];
    });
}

// --- prompts ---

const tokens = (text, special = false) => engine.model.tokenize(text, special);

// The markers are special tokens; what users wrote never is.
function chatTokens(messages) {
    if (!Array.isArray(messages) || messages.length === 0) throw invalid("'messages' must be a non-empty list");
    const turns = messages.flatMap((message) => [
        ...tokens("<|im_start|>", true), ...tokens(`${message?.role ?? "user"}\n${contentText(message?.content)}`),
        ...tokens("<|im_end|>", true), ...tokens("\n")]);
    return [...turns, ...tokens("<|im_start|>", true), ...tokens("assistant\n")];
}

function contentText(content) {
    if (typeof content === "string") return content;
    if (Array.isArray(content)) return content.map((part) => part?.text ?? "").join("");
    if (content == null) return "";
    throw invalid("'content' must be a string or a list of text parts");
}

function completionTokens(prompt) {
    const text = Array.isArray(prompt) && prompt.length === 1 ? prompt[0] : prompt;
    if (typeof text !== "string" || text === "") throw invalid("'prompt' must be a non-empty string");
    return tokens(text);
}

// --- generation ---

function number(body, name, fallback, { min = 0, whole = false } = {}) {
    const value = body[name] ?? fallback;
    if (typeof value !== "number" || !(value >= min) || (whole && !Number.isInteger(value)))
        throw invalid(`'${name}' must be a ${whole ? "whole " : ""}number of at least ${min}`);
    return value;
}

function parse(body, chat) {
    if (body === null || typeof body !== "object" || Array.isArray(body)) throw invalid("the body must be a JSON object");
    if (number(body, "n", 1) !== 1) throw invalid("'n' must be 1");
    const prompt = chat ? chatTokens(body.messages) : completionTokens(body.prompt);
    const room = contextSize - 1 - prompt.length;   // the engine keeps one cell for itself
    if (room < 1)
        throw invalid(`the prompt has ${prompt.length} tokens, the context holds ${contextSize}`, "context_length_exceeded");
    const limit = body.max_completion_tokens != null ? "max_completion_tokens" : "max_tokens";
    return {
        chat, prompt, stream: body.stream === true, includeUsage: body.stream_options?.include_usage === true,
        maxTokens: Math.min(room, number(body, limit, chat ? room : 16, { min: 1, whole: true })),
        minTokens: body.ignore_eos === true ? Infinity : number(body, "min_tokens", 0, { whole: true }),
        temperature: number(body, "temperature", 1), topP: number(body, "top_p", 1),
        seed: number(body, "seed", Math.floor(Math.random() * 2 ** 31), { whole: true }),
        id: `${chat ? "chatcmpl" : "cmpl"}-${created}-${++requestCount}`, model: flags["model-name"],
    };
}

// Yields { text } as soon as it is printable; the last item is { finish, completionTokens }.
async function* generate(request, { slot, sequence }, signal) {
    signal.throwIfAborted();
    await sequence.clearHistory();   // nothing of the previous request may be left
    let count = 0, finish = "length", pending = [], before = [], replacement;
    const steps = sequence.evaluate(request.prompt, {
        temperature: request.temperature, topP: request.topP, topK: 0, seed: request.seed, yieldEogToken: true });
    try {
        while (count < request.maxTokens) {
            let { value: token, done } = await step(steps, slot, count === 0, replacement);
            if (done) break;
            signal.throwIfAborted();
            count += 1;
            const ends = engine.model.isEogToken(token);
            if (ends && count > request.minTokens) { finish = "stop"; break; }
            // The engine's token bias leaves end tokens alone, so one that comes too early becomes a plain word.
            replacement = ends ? engine.filler : undefined;
            token = replacement ?? token;
            pending.push(token);
            const text = engine.model.detokenize(pending, false, before);
            // A character that is not complete yet ends in U+FFFD. No character is longer than four bytes.
            if (text === "" || (text.endsWith("\uFFFD") && pending.length < 4)) continue;
            yield { text };
            before = pending;
            pending = [];
        }
        if (pending.length > 0) yield { text: engine.model.detokenize(pending, false, before) };
        yield { finish, completionTokens: count };
    } finally {
        await steps.return();
    }
}

// --- answers ---

const usage = (request, completionTokens) => ({
    prompt_tokens: request.prompt.length, completion_tokens: completionTokens,
    total_tokens: request.prompt.length + completionTokens, prompt_tokens_details: { cached_tokens: 0 } });

function event(request, choices, extra) {
    const object = request.chat ? "chat.completion.chunk" : "text_completion";
    return `data: ${JSON.stringify({ id: request.id, object, created, model: request.model, choices, ...extra })}\n\n`;
}

const choice = (request, delta, text, finish_reason = null) =>
    [{ index: 0, ...(request.chat ? { delta } : { text }), logprobs: null, finish_reason }];

async function streamAnswer(response, request, parts) {
    for await (const part of parts) {
        if (!response.headersSent) {
            response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-cache" });
            if (request.chat) response.write(event(request, choice(request, { role: "assistant", content: "" })));
        }
        if (part.text) response.write(event(request, choice(request, { content: part.text }, part.text)));
        if (!part.finish) continue;
        response.write(event(request, choice(request, {}, "", part.finish)));
        if (request.includeUsage) response.write(event(request, [], { usage: usage(request, part.completionTokens) }));
        response.end("data: [DONE]\n\n");
    }
}

async function wholeAnswer(response, request, parts) {
    let text = "", last;
    for await (const part of parts) { text += part.text ?? ""; last = part; }
    const message = request.chat ? { message: { role: "assistant", content: text } } : { text };
    sendJson(response, 200, {
        id: request.id, object: request.chat ? "chat.completion" : "text_completion", created, model: request.model,
        choices: [{ index: 0, ...message, logprobs: null, finish_reason: last.finish }],
        usage: usage(request, last.completionTokens) });
}

async function complete(body, response, chat) {
    const request = parse(body, chat);
    const gone = new AbortController();
    response.on("close", () => gone.abort(new Error("the client has gone")));
    if (response.destroyed) return;  // it left while its request was read
    const place = await acquire(gone.signal);
    try {
        await (request.stream ? streamAnswer : wholeAnswer)(response, request, generate(request, place, gone.signal));
    } finally {
        release(place);
    }
}

function sendJson(response, status, body) {
    const text = JSON.stringify(body);
    response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
}

// --- routes ---

async function readJson(message) {
    const parts = [];
    for await (const part of message) parts.push(part);
    try { return JSON.parse(Buffer.concat(parts).toString("utf8")); }
    catch (error) { throw invalid(`the body is not JSON: ${error.message}`); }
}

const routes = {
    "GET /health": (_, response) =>
        sendJson(response, 200, { status: "ok", running: parallel - idle.length, waiting: waiting.length }),
    "GET /v1/models": (_, response) => sendJson(response, 200, {
        object: "list", data: [{ id: flags["model-name"], object: "model", created, owned_by: "llmbench" }] }),
    "POST /tokenize": async (message, response) => {
        const body = await readJson(message), text = body?.prompt ?? body?.content;
        if (typeof text !== "string") throw invalid("'prompt' or 'content' must be a string");
        const list = tokens(text);
        sendJson(response, 200, { count: list.length, tokens: list, max_model_len: contextSize });
    },
    "POST /v1/chat/completions": async (message, response) => complete(await readJson(message), response, true),
    "POST /v1/completions": async (message, response) => complete(await readJson(message), response, false),
};

async function serve(message, response) {
    try {
        const name = `${message.method} ${message.url.split("?")[0]}`;
        if (!routes[name]) throw new RequestError(404, `there is no ${name}`);
        if (!engine) throw new RequestError(503, "the model is loading", "loading");
        await routes[name](message, response);
    } catch (error) {
        if (response.destroyed) return;
        const told = error instanceof RequestError ? error : new RequestError(500, String(error.message));
        if (!response.headersSent) sendJson(response, told.status, told.body);
        else response.end(`data: ${JSON.stringify(told.body)}\n\n`);
    }
}

// --- life ---

async function load() {
    const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, maxThreads: threads, logLevel: "error" });
    const model = await llama.loadModel({ modelPath: flags.model, ignoreMemorySafetyChecks: true });
    const context = await model.createContext({
        sequences: parallel, contextSize, threads, ignoreMemorySafetyChecks: true,
        batching: { itemPrioritizationStrategy: shareBatch } });
    for (let slot = 0; slot < parallel; slot++) idle.push({ slot, sequence: context.getSequence() });
    engine = { llama, model, filler: model.tokenize(" the")[0] };
}

const server = http.createServer({ keepAliveTimeout: 60_000, noDelay: true }, serve);
server.on("error", (error) => fatal(error.message));
server.listen(port, flags.host, () => console.log(`listening on http://${flags.host}:${server.address().port}`));

function stop() {
    server.close();
    server.closeAllConnections();
    setTimeout(() => process.exit(0), 1000).unref();   // a batch that hangs must not keep the process
    Promise.resolve(engine?.llama.dispose()).finally(() => process.exit(0));
}
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, stop);

load().then(() => console.log("ready"), (error) => fatal(`cannot load '${flags.model}': ${error.message}`));
