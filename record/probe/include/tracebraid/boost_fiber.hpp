/* Records the scheduling of Boost.Fiber (C++14; tested with Boost 1.74). Two lines, the second in each
 * thread that runs fibers, before it makes any:
 *
 *     #include <tracebraid/boost_fiber.hpp>
 *
 *     boost::fibers::use_scheduling_algorithm<
 *         tracebraid::fibers::traced<boost::fibers::algo::work_stealing>>(thread_count);
 *
 * `traced` has the constructors of the algorithm, and passes all calls on to it. Event classes are
 * those of probe.h: a fiber is a user-level thread, a thread an LWP of the runtime `boost.fiber`,
 * and the dispatcher of a thread is the scheduler's own code (0). The fiber of the thread itself is
 * called `main`; others get a name from
 *
 *     tracebraid::fibers::set_name("worker");      // of the fiber that calls it
 *
 * Event records, as derived from the calls of an algorithm:
 *
 * - ult_create: the fiber is ready for the first time, or has been started (launch::dispatch).
 * - ult_switch: another fiber is picked, or has been started.
 * - ult_block: the fiber is left without being ready again. An algorithm does not see for what it
 *   waits: the reason is `sleep` if there is a time limit, otherwise `wait` (mutex, condition,
 *   channel, future, join).
 * - ult_wake: the fiber is ready again. If a fiber of another thread has woken it, its own thread
 *   notices that, and records it, when it next looks for such fibers.
 * - ult_exit: the data of the fiber are freed: at its end, on its own stack.
 */
#ifndef TRACEBRAID_BOOST_FIBER_HPP
#define TRACEBRAID_BOOST_FIBER_HPP

#include <tracebraid/probe.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include <boost/fiber/algo/algorithm.hpp>
#include <boost/fiber/context.hpp>
#include <boost/fiber/type.hpp>
#include <boost/intrusive_ptr.hpp>

#include <sys/syscall.h>
#include <unistd.h>

namespace tracebraid {
namespace fibers {
namespace detail {

/* A fiber, as specific data of its context. Only the thread uses it that schedules the fiber. */
struct fiber_record {
	std::uint64_t id;
	bool is_blocked;
};

inline std::uint64_t next_id()
{
	static std::atomic<std::uint64_t> last{ 0 };
	return ++last;
}

inline const void *key()
{
	static const char place = 0;
	return &place;
}

/* The context whose record has been freed: it runs until its thread picks another fiber. */
inline boost::fibers::context *&ended()
{
	static thread_local boost::fibers::context *context = nullptr;
	return context;
}

struct end_of_fiber : boost::fibers::detail::fss_cleanup_function {
	void operator()(void *data) override
	{
		fiber_record *record = static_cast<fiber_record *>(data);
		tb_ult_exit(record->id);
		delete record;
		ended() = boost::fibers::context::active();
	}
};

/* The record of a thread's own fiber belongs to its algorithm. */
struct end_of_thread : boost::fibers::detail::fss_cleanup_function {
	void operator()(void *) override {}
};

inline fiber_record *find(boost::fibers::context *context)
{
	return static_cast<fiber_record *>(context->get_fss_data(key()));
}

inline fiber_record *create(boost::fibers::context *context)
{
	static boost::fibers::detail::fss_cleanup_function::ptr_t at_end{ new end_of_fiber };
	fiber_record *record = new fiber_record{ next_id(), false };
	context->set_fss_data(key(), at_end, record, false);
	tb_ult_create(record->id, "fiber");
	return record;
}

inline bool is_dispatcher(const boost::fibers::context *context)
{
	return context->is_context(boost::fibers::type::dispatcher_context);
}

} // namespace detail

template <typename Algorithm> class traced : public boost::fibers::algo::algorithm {
	typedef boost::fibers::context context;

	boost::intrusive_ptr<Algorithm> inner_;
	detail::fiber_record own_;
	std::uint64_t current_;
	/* The current fiber if it yields. */
	context *yielding_;

	/* Notices a fiber that has been started without being picked. */
	void arrive() noexcept
	{
		context *active = context::active();
		if (active == detail::ended() || detail::is_dispatcher(active))
			return;
		detail::fiber_record *record = detail::find(active);
		if (!record)
			record = detail::create(active);
		if (record->id != current_)
			switch_to(record->id);
	}

	void switch_to(std::uint64_t next) noexcept
	{
		tb_ult_switch(current_, next);
		current_ = next;
	}

	/* The current fiber will be left. */
	void leave(context *active) noexcept
	{
		bool is_ready = active == yielding_ || detail::is_dispatcher(active) || active == detail::ended();
		yielding_ = nullptr;
		if (is_ready)
			return;
		detail::fiber_record *record = detail::find(active);
		record->is_blocked = true;
		tb_ult_block(record->id, active->sleep_is_linked() ? "sleep" : "wait");
	}

public:
	template <typename... Arguments>
	explicit traced(Arguments &&...arguments)
	    : inner_(new Algorithm(std::forward<Arguments>(arguments)...)), own_{ detail::next_id(), false },
	      current_(own_.id), yielding_(nullptr)
	{
		static boost::fibers::detail::fss_cleanup_function::ptr_t at_end{ new detail::end_of_thread };
		tb_lwp_begin("boost.fiber");
		context::active()->set_fss_data(detail::key(), at_end, &own_, false);
		tb_ult_state(own_.id, static_cast<std::int32_t>(syscall(SYS_gettid)), TB_ULT_RUNNING, "main", "");
		tb_ult_switch(0, own_.id);
	}

	traced(const traced &) = delete;
	traced &operator=(const traced &) = delete;

	~traced() override
	{
		tb_ult_exit(own_.id);
		/* The thread's own fiber waits for the dispatcher at its end, or has never been left. */
		if (current_)
			switch_to(0);
		tb_lwp_end();
	}

	void awakened(context *ready) noexcept override
	{
		arrive();
		/* Before the algorithm can give the fiber to another thread. */
		if (!detail::is_dispatcher(ready)) {
			detail::fiber_record *record = detail::find(ready);
			if (!record) {
				record = detail::create(ready);
			} else if (record->is_blocked) {
				record->is_blocked = false;
				tb_ult_wake(record->id);
			}
			if (ready == context::active())
				yielding_ = ready;
		}
		inner_->awakened(ready);
	}

	context *pick_next() noexcept override
	{
		arrive();
		context *active = context::active();
		leave(active);
		context *next = inner_->pick_next();
		if (!next || next == active)
			return next;
		detail::ended() = nullptr;
		if (detail::is_dispatcher(next)) {
			switch_to(0);
			return next;
		}
		detail::fiber_record *record = detail::find(next);
		switch_to((record ? record : detail::create(next))->id);
		return next;
	}

	bool has_ready_fibers() const noexcept override { return inner_->has_ready_fibers(); }

	void suspend_until(const std::chrono::steady_clock::time_point &time) noexcept override
	{
		inner_->suspend_until(time);
	}

	void notify() noexcept override { inner_->notify(); }
};

/* Names the calling fiber. */
inline void set_name(const char *name)
{
	detail::fiber_record *record = detail::find(boost::fibers::context::active());
	if (record)
		tb_ult_name(record->id, name);
}

} // namespace fibers
} // namespace tracebraid

#endif
