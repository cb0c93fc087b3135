// Runs the script of a page outside of the page, in Node (`node page.js PAGE < TASKS`, both JSON) or in a browser's empty
// tab (`runTasks`); see test_page.py.

/** Run tasks, each a name and an argument, in the script of a page, given its HTML, and return their results. */
async function runTasks(page, tasks) {
  const [, model] = page.match(/<script type="application\/octet-stream" id="model">([^<]*)<\/script>/);
  const [, worker] = page.match(/<script type="text\/plain" id="worker">([^]*?)<\/script>/);
  const [, script] = page.match(/<script>([^]*)<\/script>/);
  // Without a document it neither draws nor waits for messages.
  const names = "Payload, Kernel, Tokenizer, PromptEncoder, splitSentences";
  const { Payload, Kernel, Tokenizer, PromptEncoder, splitSentences } = new Function("document", `${worker}\n${script}; return { ${names} };`)();
  const texts = model.match(/.{1,65535}/g); // as in a browser, but cut anywhere
  const payload = new Payload(texts), header = await payload.readHeader();
  const tokenizer = new Tokenizer(header.tokenizer), encoder = new PromptEncoder(header, tokenizer);
  let kernel = null;
  const settings = { temperature: 0, top_p: 1, min_p: 0, repetition_penalty: 1, max_tokens: 1 };

  const run = {
    header: () => header,
    encode: (text) => tokenizer.encode(text),
    decode: (ids) => tokenizer.decode(ids),
    stream: ([ids, beginsText]) => {
      const stream = tokenizer.stream(beginsText);
      return [...ids.map((id) => [stream.push(id), stream.pending]), [stream.flush(), false]];
    },
    prompt: ([prompt, turns, most]) => encoder.encode(prompt, turns, most),
    split: (text) => splitSentences(text),
    sentences: (prompt) => encoder.encodeSentences(prompt),
    probabilities: async ([ids, settings, source]) => {
      kernel ??= await Kernel.load(header, payload);
      const { logprobs, sampling } = kernel.probabilities({ ids, source, settings });
      return [[...logprobs], [...sampling]];
    },
    score: async ([ids, from, source]) => {
      kernel ??= await Kernel.load(header, payload);
      return kernel.score({ ids, from, source });
    },
    // Prompts one after the other, each answered with a token: how many tokens the model reads for each.
    reads: async (prompts) => {
      kernel ??= await Kernel.load(header, payload);
      return prompts.map((ids) => {
        const before = kernel.numRead, random = { seed: 0, prompt: 0, position: 0 };
        kernel.extend({ ids, source: null, settings, random, ends: [], most: 1, seconds: 1 });
        return kernel.numRead - before;
      });
    },
    // What a page says in a browser without SIMD, and in one without memory for a part of the model.
    refuse: async (lacking) => {
      const huge = { ...header, parts: [{ dtype: 1, size: 2 ** 32 - 100_000 }] };
      if (lacking === "SIMD") WebAssembly.compile = () => Promise.reject(new Error("invalid opcode"));
      return Kernel.load(lacking === "SIMD" ? header : huge, payload).catch((error) => `${error.constructor.name}: ${error.message}`);
    },
    memory: async () => {
      kernel ??= await Kernel.load(header, payload);
      return kernel.exports.memory.buffer.byteLength;
    },
    answer: async ([prompt, settings, calls, source]) => {
      kernel ??= await Kernel.load(header, payload);
      const out = [], { ends } = header;
      while (out.length < settings.max_tokens && !ends.includes(out.at(-1)?.id)) {
        const random = { seed: settings.seed, prompt: 1, position: out.length };
        const most = Math.min(calls, settings.max_tokens - out.length), ids = [...prompt, ...out.map((one) => one.id)];
        out.push(...kernel.extend({ ids, source, settings, random, ends, most, seconds: 1 }));
      }
      return out.map(({ id, logprob }) => [id, logprob]);
    },
  };

  const results = [];
  for (const [name, argument] of tasks) results.push(await run[name](argument));
  return results;
}

if (typeof require === "function") {
  const fs = require("fs");
  const [page, tasks] = [fs.readFileSync(process.argv[2], "utf8"), JSON.parse(fs.readFileSync(0, "utf8"))];
  runTasks(page, tasks).then((results) => process.stdout.write(JSON.stringify(results)));
}
