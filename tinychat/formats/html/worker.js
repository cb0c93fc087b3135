// The worker: it loads the model and generates, so that the page never waits. It runs a script of its own, whose text is
// in the page.

const CALL_SECONDS = 0.012; // duration of a call of the kernel: stop and new settings act within this time
const CALL_TOKENS = 64; // most of them in a call, so that the kernel's memory grows as the conversation does

function startWorker() {
  let kernel = null, header = null; // of the header what generating needs
  let settings = null; // {values, version, slow}: the newest; the version comes back with the tokens that obey it
  let running = 0; // number of the answer in progress; 0: none
  let wake = () => {}; // ends a pause at once

  /** Let messages in, and wait for some milliseconds. */
  function pause(milliseconds) {
    return new Promise((resolve) => {
      wake = resolve;
      if (milliseconds > 0) return setTimeout(resolve, milliseconds);
      const { port1, port2 } = new MessageChannel(); // a timer would wait for four milliseconds or more
      port1.onmessage = () => resolve(port1.close());
      port2.postMessage(null);
    });
  }

  /** Generate an answer: of each of the `sources`, one after the other, to each of which but the first `beginning` leads. */
  async function generate({ job, ids, beginning, sources, seed, prompt, position, settings: first }) {
    settings = first;
    running = job;
    const began = performance.now();
    let all = [...ids], source = 0, made = position, reason = "interrupted";
    while (running === job) {
      const { values, version, slow } = settings, left = values.max_tokens - made;
      if (left <= 0) {
        reason = "length";
        break;
      }
      const most = Math.min(slow ? 1 : left, CALL_TOKENS);
      const random = { seed, prompt, position: made }, { ends } = header;
      const request = { ids: all, source: sources[source] ?? null, settings: values, random, ends, most };
      const tokens = kernel.extend({ ...request, seconds: CALL_SECONDS });
      made += tokens.length;
      for (const { id } of tokens) all.push(id);
      const isEnd = ends.includes(tokens.at(-1)?.id), isOver = isEnd && source >= sources.length - 1;
      if (isOver) tokens.pop();
      else if (isEnd) [all, source] = [[...beginning], source + 1];
      if (tokens.length) postMessage({ type: "tokens", job, tokens, version });
      if (isOver) {
        reason = "end";
        break;
      }
      await pause(tokens.length ? slow : 0);
    }
    if (running === job) running = 0;
    postMessage({ type: "finished", job, reason, seconds: (performance.now() - began) / 1000 });
  }

  const handlers = {
    async load({ texts }) {
      const payload = new Payload(texts), { kernel: size, config, tensors, encoder, parts, ...rest } = await payload.readHeader();
      header = { ends: rest.ends };
      postMessage({ type: "opened", header: rest });
      const { context_length, vocab_size } = rest;
      kernel = await Kernel.load({ kernel: size, config, tensors, encoder, parts, context_length, vocab_size }, payload);
      postMessage({ type: "ready" });
    },
    generate,
    score({ turn, ids, source, from }) {
      postMessage({ type: "scores", turn, logprobs: kernel.score({ ids, source, from }) });
    },
    stop() {
      running = 0;
      wake();
    },
    settings(message) {
      settings = message.settings;
      if (!settings.slow) wake();
    },
    odds({ number, ...request }) {
      postMessage({ type: "odds", number, ...kernel.probabilities(request) });
    },
  };

  onmessage = async ({ data }) => {
    try {
      await handlers[data.type](data);
    } catch (error) {
      running = 0;
      const isKnown = error instanceof PageError;
      postMessage({ type: "failed", message: isKnown ? error.message : `The page cannot go on: ${error.message}` });
    }
  };
}

if (typeof WorkerGlobalScope !== "undefined") startWorker();
