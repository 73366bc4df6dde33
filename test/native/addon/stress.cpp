// Runs the evaluator and the tokenizer without JavaScript, under sanitizers (`bun run test:sanitizers`):
//   stress <folder of libllama> <model.gguf> <seconds> [<seed> [<threads>]]
// It submits random and malformed plans, cancels, makes decodes fail, loads and frees other models, and closes while
// busy. Exits 0 if every accepted plan came back exactly once and equal plans had equal answers.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "evaluator.hpp"
#include "instructions.hpp"
#include "model_tokenizer.hpp"

namespace {

using tds::Evaluator;
using tds::EvaluatorOptions;
using tds::ModelFacts;
using tds::ModelTokenizer;
using tds::Outcome;
using tds::Submission;
using tds::Task;

constexpr int32_t CONTEXT_TOKENS = 5000;
constexpr int32_t FAULT_TOKEN = 8;
constexpr int32_t READ_FAULT_TOKEN = 200;

std::mt19937_64 random_bits;

int32_t below(int32_t limit) { return static_cast<int32_t>(random_bits() % static_cast<uint64_t>(limit)); }

void require(bool holds, const char * what) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::exit(1);
}

/** Returns a packed plan. Equal kinds give equal plans, so that prefixes are reused and answers can be compared. */
std::vector<int32_t> packed_plan(uint64_t kind, int32_t vocabulary) {
    std::mt19937_64 bits(kind);
    const auto number = [&](int32_t limit) { return static_cast<int32_t>(bits() % static_cast<uint64_t>(limit)); };
    const auto token = [&] { return 9 + number(vocabulary - 9); };
    std::vector<int32_t> packed;
    const int32_t prefix = kind % 13 == 0 ? 4000 + number(300) : number(200);
    const int32_t branches = kind % 7 == 0 ? 90 : number(6);
    packed.insert(packed.end(), {prefix, branches});
    for (int32_t i = 0; i < prefix; i++) packed.push_back(kind % 11 == 0 && i == 3 ? FAULT_TOKEN : token());
    for (int32_t b = 0; b < branches; b++) {
        const int32_t tokens = number(80), reads = tokens == 0 ? 0 : number(4);
        packed.insert(packed.end(), {tokens, reads});
        for (int32_t i = 0; i < tokens; i++) packed.push_back(token());
        for (int32_t r = 0; r < reads; r++) {
            const int32_t wanted = kind % 17 == 0 && r == 0 ? READ_FAULT_TOKEN : number(READ_FAULT_TOKEN);
            packed.insert(packed.end(), {number(tokens), 2, 7, wanted});
        }
    }
    return packed;
}

/** Reads damaged packed plans, which must not crash. */
void fuzz_unpacking(int32_t vocabulary) {
    for (int i = 0; i < 2000; i++) {
        std::vector<int32_t> packed = packed_plan(random_bits() % 50, vocabulary);
        for (int damage = below(4); damage >= 0; damage--) {
            const size_t at = random_bits() % packed.size();
            if (below(2)) packed[at] = static_cast<int32_t>(random_bits());
            else packed.resize(at + 1);
        }
        tds::Plan plan;
        tds::unpack_plan(packed.data(), packed.size(), vocabulary, CONTEXT_TOKENS, plan);
    }
}

struct Session {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<uint64_t, uint64_t> kind_of;
    std::map<uint64_t, std::vector<float>> answers;
    uint64_t batches = 0;
    uint64_t returned = 0, answered = 0, failed = 0, cancelled = 0;
};

/** Returns characters of all lengths and classes, and bytes that are no UTF-8. */
std::string random_text(int32_t parts) {
    static const char * const alphabet[] = {"a", "the", " ", "  ", "\n", "'s", "'ll", "7", "?!", "\u00e9", "\u4e2d",
                                            "\u00a0", "\U0001F600", "\xff", "\xe4\xb8", "\xf0\x9f"};
    std::string text;
    for (int32_t i = 0; i < parts; i++) text += alphabet[below(static_cast<int32_t>(std::size(alphabet)))];
    return text;
}

/** Tokenizes a few texts, some longer than one slice. */
void tokenize_some(ModelTokenizer & tokenizer, Session & session) {
    auto batch = std::make_unique<tds::TextBatch>();
    if (below(5) == 0) batch->texts.push_back("text, <|yes|> \xff\xfe");
    for (int32_t i = below(5); i > 0; i--) {
        batch->texts.push_back(below(2) ? random_text(below(40)) : std::string(static_cast<size_t>(below(50000)), 'a'));
    }
    {
        std::lock_guard<std::mutex> lock(session.mutex);
        session.batches++;
    }
    if (tokenizer.tokenize_all(std::move(batch))) return;
    std::lock_guard<std::mutex> lock(session.mutex);
    session.batches--;
}

/** The events of a session's evaluator and tokenizer, and random work for them. */
class Run {
  public:
    Run(const EvaluatorOptions & options, Session & session)
        : session_(session),
          tokenizer_(options.model.backends, options.model.model_path,
                     [this](const tds::TokenizerFacts & facts) { tokenizer_loaded_.set_value(facts); },
                     [this](std::unique_ptr<tds::TextBatch> batch) { take_back(*batch); },
                     [this] { tokenizer_closed_.set_value(); }),
          evaluator_(options, [this](const ModelFacts & facts) { loaded_.set_value(facts); },
                     [this](std::unique_ptr<Task> task) { take_back(*task); }, [this] { closed_.set_value(); }) {
        const tds::TokenizerFacts tokenizer_facts = tokenizer_loaded_.get_future().get();
        require(tokenizer_facts.error.empty(), tokenizer_facts.error.c_str());
        const ModelFacts facts = loaded_.get_future().get();
        require(facts.error.empty(), facts.error.c_str());
        vocabulary_ = facts.vocabulary;
    }

    int32_t vocabulary() const { return vocabulary_; }
    uint64_t accepted() const { return accepted_; }
    uint64_t refused() const { return refused_; }

    /** Submits a random plan, and sometimes cancels one and tokenizes texts. */
    void step() {
        submit_one();
        if (below(4) == 0) tokenize_some(tokenizer_, session_);
    }

    /** Closes with batches in all states. */
    void close() {
        for (int i = 0; i < 20; i++) tokenize_some(tokenizer_, session_);
        evaluator_.close();
        tokenizer_.close();
        tokenize_some(tokenizer_, session_);
        closed_.get_future().get();
        tokenizer_closed_.get_future().get();
    }

  private:
    void take_back(const Task & task) {
        std::lock_guard<std::mutex> lock(session_.mutex);
        const auto kind = session_.kind_of.find(task.id);
        require(kind != session_.kind_of.end(), "a plan came back that was not out");
        if (task.outcome == Outcome::answered) {
            const auto [known, is_new] = session_.answers.emplace(kind->second, task.logits);
            require(is_new || known->second == task.logits, "equal plans have equal answers");
        }
        session_.answered += task.outcome == Outcome::answered;
        session_.failed += task.outcome == Outcome::failed;
        session_.cancelled += task.outcome == Outcome::cancelled;
        session_.kind_of.erase(kind);
        session_.returned++;
        session_.changed.notify_all();
    }

    void take_back(const tds::TextBatch & batch) {
        std::lock_guard<std::mutex> lock(session_.mutex);
        const bool is_whole = batch.error.empty() && batch.lengths.size() == batch.texts.size();
        require(is_whole || batch.error == "The model has been closed.", "every text has its tokens");
        session_.batches--;
    }

    void submit_one() {
        const auto kind = static_cast<uint64_t>(below(60));
        const std::vector<int32_t> packed = packed_plan(kind, vocabulary_);
        auto task = std::make_unique<Task>();
        const uint64_t id = task->id = next_id_++;
        task->scope = below(2) ? "a" : "b";
        require(tds::unpack_plan(packed.data(), packed.size(), vocabulary_, CONTEXT_TOKENS, task->plan).empty(),
                "a sound plan is read");
        {
            std::lock_guard<std::mutex> lock(session_.mutex);
            session_.kind_of[id] = kind;
        }
        if (evaluator_.submit(std::move(task)) == Submission::accepted) {
            accepted_++;
            if (below(5) == 0) evaluator_.cancel(static_cast<uint64_t>(1 + below(static_cast<int32_t>(next_id_))));
        } else {
            refused_++;
            std::unique_lock<std::mutex> lock(session_.mutex);
            session_.kind_of.erase(id);
            session_.changed.wait_for(lock, std::chrono::milliseconds(20));
        }
    }

    Session & session_;
    std::promise<ModelFacts> loaded_;
    std::promise<tds::TokenizerFacts> tokenizer_loaded_;
    std::promise<void> closed_, tokenizer_closed_;
    uint64_t accepted_ = 0, refused_ = 0, next_id_ = 1;
    int32_t vocabulary_ = 0;
    ModelTokenizer tokenizer_;
    Evaluator evaluator_;
};

/** Loads and frees the model, and a missing one, repeatedly beside a session, as reloads do. */
class Neighbours {
  public:
    explicit Neighbours(const EvaluatorOptions & options) : options_(options), thread_([this] { run(); }) {}
    ~Neighbours() {
        stopping_ = true;
        thread_.join();
    }
    Neighbours(const Neighbours &) = delete;
    Neighbours & operator=(const Neighbours &) = delete;

  private:
    void run() {
        EvaluatorOptions missing = options_;
        missing.model.model_path += ".missing";
        while (!stopping_) {
            require(load(options_).empty(), "a model is loaded beside others");
            require(load(missing).find(missing.model.model_path) != std::string::npos,
                    "the error of a load is its own, whatever others log");
        }
    }

    /** Loads and closes; returns the error. */
    static std::string load(const EvaluatorOptions & options) {
        std::promise<ModelFacts> loaded;
        Evaluator evaluator(options, [&](const ModelFacts & facts) { loaded.set_value(facts); },
                            [](std::unique_ptr<Task>) {}, [] {});
        return loaded.get_future().get().error;
    }

    const EvaluatorOptions options_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

void run_session(const EvaluatorOptions & options, Session & session, double seconds) {
    uint64_t accepted = 0, refused = 0;
    {
        Run run(options, session);
        Neighbours neighbours(options);
        fuzz_unpacking(run.vocabulary());
        const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        while (std::chrono::steady_clock::now() < end) run.step();
        run.close();
        accepted = run.accepted();
        refused = run.refused();
    }
    std::lock_guard<std::mutex> lock(session.mutex);
    require(session.returned == accepted, "every accepted plan comes back");
    require(session.kind_of.empty(), "no plan is left");
    require(session.batches == 0, "no batch is left");
    std::printf("%llu answered, %llu failed, %llu cancelled, %llu refused\n",
                static_cast<unsigned long long>(session.answered), static_cast<unsigned long long>(session.failed),
                static_cast<unsigned long long>(session.cancelled), static_cast<unsigned long long>(refused));
    std::fflush(stdout);
    session.returned = session.answered = session.failed = session.cancelled = 0;
}

}  // namespace

int main(int count, char ** arguments) {
    if (count < 4) {
        std::fprintf(stderr, "usage: stress <folder of libllama> <model.gguf> <seconds> [<seed> [<threads>]]\n");
        return 2;
    }
    const uint64_t seed = count > 4 ? std::strtoull(arguments[4], nullptr, 10) : std::random_device()();
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    random_bits.seed(seed);
    EvaluatorOptions options;
    options.queue_limit = 40;
    tds::ModelOptions & model = options.model;
    model.backends.directory = arguments[1];
    model.model_path = arguments[2];
    model.context_tokens = CONTEXT_TOKENS;
    model.prefix_cache_bytes = 3 << 20;
    model.fault_token = FAULT_TOKEN;
    model.read_fault_token = READ_FAULT_TOKEN;
    // More threads are ggml's own, whose synchronization a thread sanitizer does not see.
    model.threads.fewest = model.threads.most = count > 5 ? std::atoi(arguments[5]) : 1;
    const double seconds = std::atof(arguments[3]);
    // Answers are also compared across sessions: deterministic ones with each other, and all others.
    Session aligned;
    for (int session = 0; session < 4; session++) {
        model.full_decodes = session % 2 == 1;
        const bool is_second_half = session >= 2;
        if (is_second_half && tds::has_instructions(tds::Instructions::AVX2)) model.kernels = tds::Instructions::AVX2;
        run_session(options, aligned, seconds / 5);
    }
    Session separate;
    model.deterministic = true;
    model.kernels = tds::best_instructions();
    run_session(options, separate, seconds / 5);
    return 0;
}
