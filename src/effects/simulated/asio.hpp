// asio, for the simulated server
#pragma once

#ifndef ASIO_STANDALONE
#define ASIO_STANDALONE
#endif
#include <version>  // before asio: it asks for library features
#include <asio/io_context.hpp>    // all of them for the simulated server
#include <asio/ip/tcp.hpp>        // sockets
#include <asio/post.hpp>          // what must wait for the current handler
#include <asio/steady_timer.hpp>  // steps
#include <asio/write.hpp>         // answers
